"""What ended and started jobs teach: run times, waits, usage. The same for a log that is replayed and for a hub."""

import numpy as np

from gpuwaste.plan.start_time.past_runs import PastRuns
from gpuwaste.plan.waits.instant import Ints, JobRows
from gpuwaste.plan.waits.last_waits import LastWaits
from gpuwaste.plan.waits.usage import Usage


class Knowledge:
    """Feed `started` and `ended` in the order of time, with what happened before the instant that is asked about."""

    def __init__(self) -> None:
        self.waits = LastWaits()
        self.past = PastRuns()
        self.usage = Usage()

    def started(self, jobs: JobRows) -> None:
        """Take jobs that have started, in their order."""
        self.waits.add(jobs)

    def ended(self, jobs: JobRows, row: int, at: int) -> None:
        """Take a job that has ended after a start."""
        procs, gpus, limit, user, account, pool = (
            int(column[row]) for column in (jobs.procs, jobs.gpus, jobs.limit, jobs.user, jobs.account, jobs.pool)
        )
        run_s = max(at - int(jobs.start[row]), 0)
        self.past.observe(user, (procs, gpus, limit), run_s, limit)
        for key in (("user", user), ("account", account), ("pool", pool)):
            self.usage.add(key, at, float(procs * run_s))


def learnt_of(jobs: JobRows, ended: Ints) -> Knowledge:
    """Return what jobs that have started teach, in any order; `ended` [n] is -1 for one that still runs."""
    known = Knowledge()
    done = np.flatnonzero(ended >= 0)
    at = np.concatenate((jobs.start, ended[done]))
    row = np.concatenate((np.arange(len(ended)), done))
    for event in np.argsort(at, kind="stable").tolist():
        job = int(row[event])
        if event < len(ended):
            known.started(jobs.at(slice(job, job + 1)))
        else:
            known.ended(jobs, job, int(at[event]))
    return known
