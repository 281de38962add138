"""The request of a job that accounting knows: only what was known at its submission."""

from gpuwaste.core.errors import ParseError
from gpuwaste.core.job import JobRecord
from gpuwaste.core.request import JobRequest
from gpuwaste.slurm.tres import gpu_count, memory_b, parse_tres


def request_of(job: JobRecord) -> JobRequest:
    """Return the request of a run; amounts come from ReqTRES. A text that is no TRES leaves its amounts unknown."""
    try:
        tres = parse_tres(job.req_tres)
        gpus, mem_b = gpu_count(tres), memory_b(tres)
    except ParseError:
        tres, gpus, mem_b = {}, gpu_count({}), None
    return JobRequest(
        user=job.user,
        submit=job.submit,
        account=job.account,
        partition=job.partition,
        qos=job.qos,
        name=job.name,
        time_limit_s=job.time_limit_s,
        nodes=_whole(tres.get("node")),
        cpus=_whole(tres.get("cpu")),
        mem_b=mem_b,
        gpus=gpus.total,
        gpu_type=gpus.type,
        is_array=job.array_job_id is not None,
        interactive=job.interactive,
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
