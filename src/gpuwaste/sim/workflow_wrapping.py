"""Workflows with their tasks joined into fewer jobs, as Autosubmit's wrappers do, and played among the jobs of others.

A workflow has members that are independent of each other, and each member has chunks, of which each needs the one
before it. Without wrapping every task is a job. A vertical wrapper joins the chunks of a member into one long job; a
horizontal one joins the members' tasks of a chunk into one wide job; both ways give one job, of vertical wrappers
that run in parallel, or of horizontal ones that run one after the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.fair_share_queue import MARENOSTRUM, ordered, starts_by_priority
from gpuwaste.sim.trace import Planned

Ints = NDArray[np.int64]
SINGLE: Final = "single"
_NOTHING: Final = -1
Floats = NDArray[np.float64]
_OWN = ("workflow", "workflow")  # the account and the user of the workflow
_ABOVE_ALL = 10.0  # times the most used, for the worst fair share


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


@dataclass(frozen=True, slots=True)
class BackgroundLoad:
    """n jobs of others by submission; `owner` [n] is the place of each one's (account, user) in `owners`.

    `usage` [owners] is what they had used as the first of them was submitted, CPU seconds.
    """

    submit: Ints
    run_s: Ints
    limit_s: Ints
    procs: Ints
    owner: Ints
    owners: tuple[tuple[str, str], ...]
    usage: Floats
    processors: int

    def planned(self) -> Planned:
        """Return the jobs as input of a scheduler, which plans with limits."""
        return Planned(self.submit, self.run_s, self.limit_s, self.limit_s, self.procs, self.owner[:0])

    def starts(self) -> Ints:
        """Return when the jobs start without a workflow."""
        jobs = self.planned()
        by = ordered(jobs, self.processors, self.owners, self.owner, self.usage)
        return starts_by_priority(jobs, self.processors, by, MARENOSTRUM)[0]

    def usage_at(self, start: Ints, instant: int) -> Floats:
        """Return the decayed usage [owners] at an instant, by the starts [n] of the jobs."""
        rate = -np.log(MARENOSTRUM.decays)
        begin, end = np.minimum(start, instant), np.minimum(start + self.run_s, instant)
        used = self.procs * (np.exp(-rate * (instant - end)) - np.exp(-rate * (instant - begin))) / rate
        before = self.usage * np.exp(-rate * (instant - int(self.submit[0])))
        found: Floats = before + np.bincount(self.owner, weights=used, minlength=len(self.owners))
        return found

    def usage_for(self, fair_share: float, usage: Floats) -> float:
        """Return the usage that ranks the workflow's user where its fair share is nearest, by that of the others.

        Fair Tree ranks accounts of equal shares by what they used; the workflow's user has one of its own.
        """
        names, account = np.unique([name for name, _ in self.owners], return_inverse=True)
        used = np.bincount(account, weights=usage, minlength=len(names))
        order = np.argsort(used)
        users = np.bincount(account, minlength=len(names))[order]
        above = np.concatenate([[0], np.cumsum(users)])  # users who rank better, by their accounts
        total = len(self.owners) + 1
        place = int(np.argmin(np.abs((total - above) / total - fair_share)))
        sorted_usage = used[order]
        if place == 0:
            return 0.0
        if place == len(names):
            return float(sorted_usage[-1]) * _ABOVE_ALL + 1.0
        return float(sorted_usage[place - 1] + sorted_usage[place]) / 2


def workflow_starts(
    others: BackgroundLoad, wrapped: Wrapped, submitted: int, used: float, notice_s: int = 0
) -> tuple[Ints, Floats]:
    """Return the starts [m] and the priorities at start [m] of a workflow's jobs, each submitted after those it needs.

    `notice_s` passes between an end and the submission of the job that needs it. `used` is what the workflow's user
    had used as the first of the others' jobs was submitted. Limits are run times.
    """
    m, n = len(wrapped.run_s), len(others.submit)
    run = np.concatenate([others.run_s, wrapped.run_s])
    limit = np.concatenate([others.limit_s, np.maximum(wrapped.run_s, 1)])
    jobs = Planned(
        np.concatenate([others.submit, np.full(m, submitted)]),
        run,
        limit,
        limit,
        np.concatenate([others.procs, wrapped.procs]),
        others.owner[:0],
    )
    owner = np.concatenate([others.owner, np.full(m, len(others.owners))])
    usage = np.append(others.usage, used)
    after = np.concatenate([np.full(n, -1), np.where(wrapped.after >= 0, wrapped.after + n, -1)])
    owners = (*others.owners, _OWN)
    by = ordered(jobs, others.processors, owners, owner, usage, after=after, last=m, notice_s=notice_s)
    start, priority = starts_by_priority(jobs, others.processors, by, MARENOSTRUM)
    return start[n:], priority[n:]
