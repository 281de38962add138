"""Multifactor priority with Fair Tree and backfill, where every user is an account of its own without usage at first.

Weights and periods are MareNostrum 4's (fair_share_queue): fair share and age 100,000, size 10,000.
"""

from typing import Final

import numpy as np

from gpuwaste.sim.fair_share_queue import MARENOSTRUM, ordered, starts_by_priority
from gpuwaste.sim.trace import Ints, Planned

TITLE: Final = "priority by fair share, age and size, with backfill each minute; every user has equal shares"


def starts(jobs: Planned, total: int) -> Ints:
    """Return the start of each job where one user submits all; see schedulers."""
    return starts_by_user(jobs, total, np.zeros(len(jobs.submit), dtype=np.int64))


def starts_by_user(jobs: Planned, total: int, user: Ints) -> Ints:
    """Return the start of each job; `user` [n] numbers who submits it."""
    names, owner = np.unique(user, return_inverse=True)
    owners = [(f"a{name}", f"u{name}") for name in names.tolist()]
    by = ordered(jobs, total, owners, owner.astype(np.int64), np.zeros(len(owners)))
    found, _ = starts_by_priority(jobs, total, by, MARENOSTRUM)
    return found
