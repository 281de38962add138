"""Requests and TRES: a request whose amounts stand in a printed list, and the amounts of a request."""

from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.tres import count_of_tres, gpu_count, memory_b, parse_tres
from gpuwaste.slurm.submit.request import JobRequest

_SAME: Final = ("user", "submit", "account", "partition", "qos", "name", "time_limit_s")


def request_like(job: Any, **known: Any) -> JobRequest:
    """Build the request of a run that accounting (JobRecord) or slurmctld (RunningJob) knows, by its own fields."""
    same = {name: getattr(job, name) for name in _SAME}
    return request_from_tres(job.req_tres, is_array=job.array_job_id is not None, **same, **known)


def request_amounts(request: JobRequest) -> dict[str, int]:
    """Return what a request asks for by TRES; memory in bytes, left out where it is not said."""
    found = {"cpu": request.cpus or 0, "node": request.nodes or 0, "gres/gpu": request.gpus, "mem": request.mem_b or 0}
    if request.gpu_type and "," not in request.gpu_type:
        found[f"gres/gpu:{request.gpu_type}"] = request.gpus
    return {name: amount for name, amount in found.items() if amount}


def request_from_tres(tres: str, **known: Any) -> JobRequest:
    """Build a request whose amounts come from a printed TRES list; a list that is none leaves them unknown."""
    try:
        amounts = parse_tres(tres)
        gpus, mem_b = gpu_count(amounts), memory_b(amounts)
    except ParseError:
        amounts, gpus, mem_b = {}, gpu_count({}), None
    return JobRequest(
        nodes=count_of_tres(amounts, "node"),
        cpus=count_of_tres(amounts, "cpu"),
        mem_b=mem_b,
        gpus=gpus.total,
        gpu_type=gpus.type,
        **known,
    )
