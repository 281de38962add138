"""First come, first served: a job that does not fit holds up all behind it."""

from typing import Final

import numpy as np

from gpuwaste.sim.ends import Ints
from gpuwaste.sim.in_order import starts_in_order

TITLE: Final = "first come, first served, without backfill"


def starts(submit: Ints, run: Ints, believed: Ints, limit: Ints, procs: Ints, total: int) -> Ints:  # noqa: ARG001 the protocol of schedulers
    """Return the start of each job; see schedulers."""
    return starts_in_order(submit, run, np.zeros(len(submit), np.int64), procs, total)
