"""How good quantiles of waits are: coverage, pinball loss, beside the best of the baselines."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.models.waits.learnt import corrected, learnt
from gpuwaste.models.waits.replay import WaitRows
from gpuwaste.plan.when.expectation import QUANTILES

Floats = NDArray[np.float64]
JUDGED_FROM: Final = 0.2  # share of the log that is only learnt from
SIMULATED: Final = "queue simulated with drawn run times"
SHIFTED: Final = "the same, corrected by past errors"
LEARNT: Final = "learnt from it and the queue, corrected"


class WaitFigures(NamedTuple):
    """What one way to predict comes to: shares of jobs; `pinball_s` is the mean of p10's, p50's and p90's, in seconds.

    `beside_best` is the share by which the pinball loss is above the best baseline's.
    """

    method: str
    coverage: float
    below: float
    above: float
    pinball_s: float
    beside_best: float


def pinball(waited: Floats, said: Floats) -> float:
    """Return the mean pinball loss of quantiles [m, 3] (Koenker and Bassett, 1978), in seconds."""
    levels = np.array(QUANTILES)
    gap = waited[:, None] - said
    return float(np.maximum(levels * gap, (levels - 1) * gap).mean())


def figures(rows: WaitRows, *, seed: int = 1, threads: int = 2) -> tuple[list[WaitFigures], int]:
    """Return the figures of the baselines and of the predictions, and how many jobs were judged."""
    said = {
        **rows.baselines,
        SIMULATED: rows.simulated,
        SHIFTED: corrected(rows, rows.simulated),
        LEARNT: corrected(rows, learnt(rows, seed=seed, threads=threads)),
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
        found.append(WaitFigures(name, 1 - below - above, below, above, losses[name], share))
    return found, int(judged.sum())
