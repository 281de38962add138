"""First come, first served: a job that does not fit holds up all behind it."""

from typing import Final

from gpuwaste.sim.in_order import starts_in_order
from gpuwaste.sim.trace import Ints, Planned

TITLE: Final = "first come, first served, without backfill"


def starts(jobs: Planned, total: int) -> Ints:
    """Return the start of each job; see schedulers."""
    return starts_in_order(jobs, total, False)  # noqa: FBT003 as above
