"""Trees that predict quantiles of waits, fitted in windows of time and shifted by past errors; and their figures.

Before each window the trees are fitted to the jobs that had started by then; a job that still waits enters with its
wait so far, since leaving it out would bias the trees to short waits. Coverage and pinball loss are compared with the
best of the baselines.
"""

import heapq
from itertools import pairwise
from typing import Final

import numpy as np
import xgboost
from numpy.typing import NDArray

from gpuwaste.models.wait_replay import WaitRows
from gpuwaste.plan.start_time.start_expectation import QUANTILES
from gpuwaste.plan.start_time.wait_correction import WaitShifts
from gpuwaste.plan.wait_bundle import WaitFigures, raw_of, seconds_of

Floats = NDArray[np.float64]
WINDOWS: Final = 10  # with equal numbers of submissions; the trees are fitted again before each
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
JUDGED_FROM: Final = 0.2  # share of the log that is only learnt from
SIMULATED: Final = "queue simulated with drawn run times"
SHIFTED: Final = "the same, corrected by past errors"
LEARNT: Final = "learnt from it and the queue, corrected"


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

    `shifts` keeps its state after the last submission.
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


def pinball(waited: Floats, said: Floats) -> float:
    """Return the mean pinball loss of quantiles [m, 3] (Koenker and Bassett, 1978), in seconds."""
    levels = np.array(QUANTILES)
    gap = waited[:, None] - said
    return float(np.maximum(levels * gap, (levels - 1) * gap).mean())


def figures(rows: WaitRows, raw: Floats) -> tuple[list[WaitFigures], int]:
    """Return the figures of the baselines and of the predictions, and how many jobs were judged.

    `raw` [m, 3] are the predictions of trees fitted in the order of time (learnt_waits.py).
    """
    said = {
        **rows.baselines,
        SIMULATED: rows.simulated,
        SHIFTED: corrected(rows, rows.simulated),
        LEARNT: corrected(rows, raw),
    }
    judged = np.arange(len(rows.submit)) >= JUDGED_FROM * len(rows.submit)
    judged &= np.isfinite(said[LEARNT]).all(axis=1)
    waited = rows.waited[judged]
    losses = {name: pinball(waited, quantiles[judged]) for name, quantiles in said.items()}
    best = min(losses[name] for name in rows.baselines)
    found = []
    for name, quantiles in said.items():
        below = float(np.mean(waited < quantiles[judged, 0]))
        above = float(np.mean(waited > quantiles[judged, -1]))
        share = losses[name] / best - 1 if best else 0.0
        found.append(
            WaitFigures(
                method=name,
                coverage=1 - below - above,
                below=below,
                above=above,
                pinball_s=losses[name],
                beside_best=share,
            )
        )
    return found, int(judged.sum())
