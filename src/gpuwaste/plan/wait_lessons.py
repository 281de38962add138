"""What the hub learns from its own expectations: some waiting jobs are predicted, and their starts correct the next.

Held in memory: a restarted hub starts again from nothing.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpuwaste.core.errors import NoDataError
from gpuwaste.plan.start_time.start_expectation import expect
from gpuwaste.plan.start_time.wait_correction import OpenWaits, WaitShifts
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.submit.job_request import request_like

if TYPE_CHECKING:
    from gpuwaste.plan.learnt_waits import LearntWaits
    from gpuwaste.plan.live_queue import LiveQueue

SAMPLED: Final = 4  # new jobs predicted each time: each costs DRAWS simulations of the queue
DRAWS: Final = 20
_PENDING: Final = "PENDING"


class WaitLessons:
    """Predicts the newest waiting jobs, and takes their starts; one thread at a time."""

    def __init__(self) -> None:
        self.shifts = WaitShifts()
        self._open = OpenWaits(self.shifts)
        self._said_at: dict[int, int] = {}

    def step(self, live: "LiveQueue", jobs: Mapping[int, RunningJob], learnt: "LearntWaits | None" = None) -> None:
        """Take the starts since the last step, then predict new jobs, by `learnt` too where it has a bundle in use.

        Raises UsageError for an impossible queue, ModelError for trees that fail.
        """
        corrected = [self._open, *([learnt.open] if learnt is not None and learnt.in_use else [])]
        for job_id, at in list(self._said_at.items()):
            job = jobs.get(job_id)
            if job is not None and job.state == _PENDING:
                continue
            del self._said_at[job_id]
            for waits in corrected:
                if job is not None and job.start is not None and job.restarts == 0:
                    waits.started(job_id, job.start - at)
                else:
                    waits.gone(job_id)
        waiting = dict.fromkeys(live.ids)
        fresh = [job_id for job_id in waiting if job_id not in self._said_at and job_id in jobs]
        fresh.sort(key=lambda job_id: -(jobs[job_id].submit or 0))
        for job_id in fresh[:SAMPLED]:
            self._predict(live, jobs[job_id], learnt)

    def _predict(self, live: "LiveQueue", job: RunningJob, learnt: "LearntWaits | None") -> None:
        found = live.without(job.job_id)
        if found is None:
            return
        rest, place = found
        now = live.queue.now
        try:
            row = rest.candidate(request_like(job), place=place, begin_s=max(0, (job.eligible or 0) - now), job=job)
        except NoDataError:
            return
        (one,) = expect(rest.queue, [row], DRAWS)
        if one is not None:
            self._said_at[job.job_id] = now
            self._open.said(job.job_id, (one.p10 - now, one.p50 - now, one.p90 - now))
        if learnt is not None and learnt.in_use:
            (said,) = learnt.raw([replace(request_like(job), submit=now)])
            if said is not None:
                learnt.open.said(job.job_id, said)
