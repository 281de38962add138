"""The request of a job that accounting knows: only what was known at its submission."""

from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.submit.request import JobRequest, request_like


def request_of(job: JobRecord) -> JobRequest:
    """Return the request of a run; amounts come from ReqTRES. A text that is no TRES leaves its amounts unknown."""
    return request_like(job, interactive=job.interactive)
