"""How good quantiles of waits are: coverage, pinball loss, beside the best of the baselines."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.models.waits.learnt import corrected
from gpuwaste.models.waits.replay import WaitRows
from gpuwaste.plan.start_time.expectation import QUANTILES
from gpuwaste.plan.wait_card import WaitFigures

Floats = NDArray[np.float64]
JUDGED_FROM: Final = 0.2  # share of the log that is only learnt from
SIMULATED: Final = "queue simulated with drawn run times"
SHIFTED: Final = "the same, corrected by past errors"
LEARNT: Final = "learnt from it and the queue, corrected"


def pinball(waited: Floats, said: Floats) -> float:
    """Return the mean pinball loss of quantiles [m, 3] (Koenker and Bassett, 1978), in seconds."""
    levels = np.array(QUANTILES)
    gap = waited[:, None] - said
    return float(np.maximum(levels * gap, (levels - 1) * gap).mean())


def figures(rows: WaitRows, raw: Floats) -> tuple[list[WaitFigures], int]:
    """Return the figures of the baselines and of the predictions, and how many jobs were judged.

    `raw` [m, 3] is what trees said that were fitted in the order of time (learnt.py).
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
