"""Quantiles of waits learnt from what was known at submission, in windows of time, and shifted by past errors.

Before each window the trees are fitted to the jobs that had started by then; a job that still waits enters with what it
has waited so far, since to leave it out would teach that waits are short.
"""

import heapq
from itertools import pairwise
from typing import Final

import numpy as np
import xgboost
from numpy.typing import NDArray

from gpuwaste.models.waits.replay import WaitRows
from gpuwaste.plan.when.correction import FLOOR_S, WaitShifts
from gpuwaste.plan.when.expectation import QUANTILES

Floats = NDArray[np.float64]
WINDOWS: Final = 10  # of equally many submissions; the trees are fitted anew before each
FIRST: Final = 0.1  # share of the log before the first window
ROUNDS: Final = 120
MIN_ROWS: Final = 50
PARAMS: Final = {
    "objective": "reg:quantileerror",
    "tree_method": "hist",
    "max_depth": 5,
    "eta": 0.07,
    "subsample": 0.7,
    "colsample_bytree": 0.4,
    "min_child_weight": 10,
}


def learnt(rows: WaitRows, *, windows: int = WINDOWS, seed: int = 1, threads: int = 2) -> Floats:
    """Return p10, p50 and p90 of the waits [m, 3] in seconds; NaN before the first window."""
    found = np.full((len(rows.submit), len(QUANTILES)), np.nan)
    cuts = np.linspace(FIRST * len(found), len(found), windows + 1).astype(int)
    for begin, end in pairwise(cuts.tolist()):
        if begin < MIN_ROWS or begin == end:
            continue
        now = rows.submit[begin]
        waited = np.minimum(rows.start[:begin], now) - rows.submit[:begin]
        data = xgboost.QuantileDMatrix(rows.features[:begin], np.log(waited + FLOOR_S))
        asked = {**PARAMS, "quantile_alpha": np.array(QUANTILES), "seed": seed, "nthread": threads}
        trees = xgboost.train(asked, data, ROUNDS)
        raw = np.maximum.accumulate(trees.inplace_predict(rows.features[begin:end]), axis=1)
        found[begin:end] = np.maximum(np.exp(raw) - FLOOR_S, 0)
    return found


def corrected(rows: WaitRows, said: Floats) -> Floats:
    """Return the quantiles [m, 3] shifted by the errors of the jobs that had started before each submission."""
    shifts, found = WaitShifts(), np.full_like(said, np.nan)
    started: list[tuple[int, int]] = []
    for row in np.flatnonzero(np.isfinite(said).all(axis=1)).tolist():
        while started and started[0][0] < rows.submit[row]:
            past = heapq.heappop(started)[1]
            shifts.observe(said[past].tolist(), float(rows.start[past] - rows.submit[past]))
        found[row] = np.round(shifts.apply(said[row].tolist()))
        heapq.heappush(started, (int(rows.start[row]), row))
    return found
