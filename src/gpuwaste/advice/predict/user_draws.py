"""Draws of whole users with replacement: the bootstrap of all figures and of the comparison of two models.

One user's jobs are alike, so drawing jobs would make every interval too narrow (cluster bootstrap).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def drawn_weights(users: NDArray[np.integer], repeats: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Yield for each draw the weight of each row: how often its user was drawn."""
    rng = np.random.default_rng(seed)
    present, inverse = np.unique(users, return_inverse=True)
    drawn = rng.multinomial(len(present), np.full(len(present), 1 / len(present)), size=repeats)
    for counts in drawn:
        yield counts[inverse].astype(np.float64)
