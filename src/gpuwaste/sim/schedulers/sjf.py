"""Shortest job first, by the walltime that is believed: a job that does not fit holds up all that are longer."""

from typing import Final

from gpuwaste.sim.in_order import starts_in_order
from gpuwaste.sim.trace import Ints, Planned

TITLE: Final = "shortest job first, without backfill"


def starts(jobs: Planned, total: int) -> Ints:
    """Return the start of each job; see schedulers."""
    return starts_in_order(jobs, total, True)  # noqa: FBT003 as above
