"""Wrapping of workflows: tasks of members and chunks joined into fewer jobs, as Autosubmit's wrappers do.

A workflow has members that are independent of each other, and each member has chunks, of which each needs the one
before it. Without wrapping every task is a job. A vertical wrapper joins the chunks of a member into one long job; a
horizontal one joins the members' tasks of a chunk into one wide job; both ways give one job, of vertical wrappers
that run beside each other, or of horizontal ones that run one after the other.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
SINGLE: Final = "single"
_NOTHING: Final = -1


class Workflow(NamedTuple):
    """Tasks of `cpus` each; `run_s` [members, chunks] is what each runs."""

    run_s: Ints
    cpus: int

    @property
    def ideal_s(self) -> int:
        """How long the workflow takes where nothing waits: the longest member."""
        return int(self.run_s.sum(axis=1).max())


class Wrapped(NamedTuple):
    """The m jobs that a workflow becomes; `after` [m] is the job that each one needs, -1 for none."""

    run_s: Ints
    procs: Ints
    after: Ints


def _single(workflow: Workflow) -> Wrapped:
    members, chunks = workflow.run_s.shape
    place = np.arange(members * chunks)
    after = np.where(place % chunks == 0, _NOTHING, place - 1)
    return Wrapped(workflow.run_s.ravel(), np.full(len(place), workflow.cpus), after)


def _vertical(workflow: Workflow) -> Wrapped:
    members = len(workflow.run_s)
    return Wrapped(workflow.run_s.sum(axis=1), np.full(members, workflow.cpus), np.full(members, _NOTHING))


def _horizontal(workflow: Workflow) -> Wrapped:
    members, chunks = workflow.run_s.shape
    return Wrapped(workflow.run_s.max(axis=0), np.full(chunks, members * workflow.cpus), np.arange(chunks) - 1)


def _vertical_horizontal(workflow: Workflow) -> Wrapped:
    return _one(workflow, int(workflow.run_s.sum(axis=1).max()))


def _horizontal_vertical(workflow: Workflow) -> Wrapped:
    return _one(workflow, int(workflow.run_s.max(axis=0).sum()))


def _one(workflow: Workflow, run_s: int) -> Wrapped:
    return Wrapped(np.array([run_s]), np.array([len(workflow.run_s) * workflow.cpus]), np.array([_NOTHING]))


WRAPPERS: Final[Mapping[str, Callable[[Workflow], Wrapped]]] = MappingProxyType({
    SINGLE: _single,
    "vertical": _vertical,
    "horizontal": _horizontal,
    "vertical-horizontal": _vertical_horizontal,
    "horizontal-vertical": _horizontal_vertical,
})  # fmt: skip
"""By name: what a workflow becomes."""


def time_to_solution(wrapped: Wrapped, start: Ints, submitted: int) -> int:
    """Return the seconds from the submission of a workflow to the end of its last job, by the starts [m]."""
    return int((start + wrapped.run_s).max()) - submitted
