"""Requests of jobs in the system, by job id: a modification says only what changes."""

from typing import Final

from gpuwaste.jobs.history.requests import request_of
from gpuwaste.jobs.job_event import HistoryEvent
from gpuwaste.slurm.submit.request import JobRequest

MAX_JOBS: Final = 20_000


class KnownJobs:
    """The jobs that the history told last and that have not ended; on the loop's thread."""

    def __init__(self, most: int = MAX_JOBS) -> None:
        self._most = most
        self._requests: dict[int, JobRequest] = {}

    def note(self, event: HistoryEvent) -> None:
        """Take an event of the history."""
        job = event.job
        if job is None:
            return
        if event.kind == "ended":
            self._requests.pop(job.job_id, None)
        elif event.kind != "ledger" and job.job_id not in self._requests:
            while len(self._requests) >= self._most:
                del self._requests[next(iter(self._requests))]
            self._requests[job.job_id] = request_of(job)

    def get(self, job_id: int) -> JobRequest | None:
        """Return what a job asked for at its submission, None where that is not known."""
        return self._requests.get(job_id)
