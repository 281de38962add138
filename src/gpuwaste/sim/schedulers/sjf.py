"""Shortest job first, by the walltime that is believed: a job that does not fit holds up all that are longer."""

from typing import Final

from gpuwaste.sim.ends import Ints
from gpuwaste.sim.in_order import starts_in_order

TITLE: Final = "shortest job first, without backfill"


def starts(submit: Ints, run: Ints, believed: Ints, limit: Ints, procs: Ints, total: int) -> Ints:  # noqa: ARG001 the protocol of schedulers
    """Return the start of each job; see schedulers."""
    return starts_in_order(submit, run, believed, procs, total)
