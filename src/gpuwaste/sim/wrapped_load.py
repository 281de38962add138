"""A workflow among the jobs of others: its user's usage set for a fair share, its jobs added, their starts played."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.fair_share_queue import MARENOSTRUM, ordered, starts_by_priority
from gpuwaste.sim.trace import Planned
from gpuwaste.sim.wrappers import Wrapped

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_OWN = ("workflow", "workflow")  # the account and the user of the workflow
_ABOVE_ALL = 10.0  # times the most used, for the worst fair share


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
        """Return the jobs as a scheduler is given them, which plans with limits."""
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
        above = np.concatenate([[0], np.cumsum(users)])  # users who rank better, by the accounts that do
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
    """Return the starts [m] and the priorities at start [m] of a workflow's jobs, submitted as what they need ends.

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
