"""Trees that give quantiles of waits, fitted in windows of time and shifted by past errors.

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
from gpuwaste.plan.start_time.correction import WaitShifts
from gpuwaste.plan.start_time.expectation import QUANTILES
from gpuwaste.plan.waits.trees import raw_of, seconds_of

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


def fitted(rows: WaitRows, end: int, now: int, *, seed: int = 1, threads: int = 2) -> tuple[xgboost.Booster, ...]:
    """Return trees for each of QUANTILES, learnt from the first `end` rows as they were known at `now`."""
    waited = np.minimum(rows.start[:end], now) - rows.submit[:end]
    data = xgboost.QuantileDMatrix(rows.features[:end], raw_of(waited.astype(np.float64)), nthread=threads)
    asked = {**PARAMS, "seed": seed, "nthread": threads}
    return tuple(xgboost.train({**asked, "quantile_alpha": q}, data, ROUNDS) for q in QUANTILES)


def learnt(rows: WaitRows, *, windows: int = WINDOWS, seed: int = 1, threads: int = 2) -> Floats:
    """Return p10, p50 and p90 of the waits [m, 3] in seconds; NaN before the first window."""
    found = np.full((len(rows.submit), len(QUANTILES)), np.nan)
    cuts = np.linspace(FIRST * len(found), len(found), windows + 1).astype(int)
    for begin, end in pairwise(cuts.tolist()):
        if begin < MIN_ROWS or begin == end:
            continue
        trees = fitted(rows, begin, int(rows.submit[begin]), seed=seed, threads=threads)
        raw = np.column_stack([one.inplace_predict(rows.features[begin:end]) for one in trees])
        found[begin:end] = seconds_of(raw.astype(np.float64))
    return found


def corrected(rows: WaitRows, said: Floats, shifts: WaitShifts | None = None) -> Floats:
    """Return the quantiles [m, 3] shifted by the errors of the jobs that had started before each submission.

    `shifts` is left as it is after the last submission.
    """
    shifts, found = shifts or WaitShifts(), np.full_like(said, np.nan)
    started: list[tuple[int, int]] = []
    for row in np.flatnonzero(np.isfinite(said).all(axis=1)).tolist():
        while started and started[0][0] < rows.submit[row]:
            past = heapq.heappop(started)[1]
            shifts.observe(said[past].tolist(), float(rows.start[past] - rows.submit[past]))
        found[row] = np.round(shifts.apply(said[row].tolist()))
        heapq.heappush(started, (int(rows.start[row]), row))
    return found
