"""The request of a job that accounting knows: only what was known at its submission."""

from gpuwaste.core.job import JobRecord
from gpuwaste.core.request import JobRequest
from gpuwaste.slurm.tres_request import request_from_tres


def request_of(job: JobRecord) -> JobRequest:
    """Return the request of a run; amounts come from ReqTRES. A text that is no TRES leaves its amounts unknown."""
    return request_from_tres(
        job.req_tres,
        user=job.user,
        submit=job.submit,
        account=job.account,
        partition=job.partition,
        qos=job.qos,
        name=job.name,
        time_limit_s=job.time_limit_s,
        is_array=job.array_job_id is not None,
        interactive=job.interactive,
    )
