"""What a scheduler believes a job takes that looks at its user's last two jobs: their mean, at most the limit.

Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates"
(2007): a job counts from its end on, and a user with fewer than two ended jobs is believed.
"""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.compiled import compiled

Ints = NDArray[np.int64]


@compiled
def no_runs(user: Ints) -> Ints:
    """Return room for the last two run times of each user, -1 for none."""
    return np.full((user.max() + 1 if len(user) else 0, 2), -1, dtype=np.int64)


@compiled
def ended(runs: Ints, user: int, run: int) -> None:
    """Take a job that has ended."""
    runs[user, 1] = runs[user, 0]
    runs[user, 0] = run


@compiled
def believed_of(runs: Ints, user: int, limit: int) -> int:
    """Return what is believed of a user's job that is submitted now, at least 1 s."""
    if runs[user, 1] < 0:
        return limit
    mean: int = (runs[user, 0] + runs[user, 1]) // 2
    return max(min(mean, limit), 1)
