"""slurmctld's jobs as slurmrestd tells them (/slurm/VERSION/job/ID): what was asked for, as JobRequests."""

from collections.abc import Iterable
from typing import Any

from gpuwaste.core.errors import ParseError
from gpuwaste.core.request import JobRequest
from gpuwaste.core.units import MINUTE_S, parse_size_b
from gpuwaste.slurm import rest_value as value
from gpuwaste.slurm.scontrol import RunningJob
from gpuwaste.slurm.tres import gpu_count, memory_b, parse_tres


def parse_requests(data: bytes) -> list[JobRequest]:
    """Return one request for each record: several for an array with started tasks and for a het job.

    Raises ParseError and SlurmError: a job is asked for alone, so one that cannot be read is an error.
    """
    return [_request(job) for job in value.jobs(data)]


def _request(job: Any) -> JobRequest:
    submit = value.time_s(job, "submit_time")
    if submit is None:
        raise ParseError(f"job {value.number(job, 'job_id')}: submit_time is missing")
    limit_min = value.number(job, "time_limit")
    return request_from_tres(
        value.text(job, "tres_req_str"),
        user=value.text(job, "user_name") or str(value.number(job, "user_id") or ""),
        submit=submit,
        account=value.text(job, "account"),
        partition=value.text(job, "partition"),
        qos=value.text(job, "qos"),
        name=value.text(job, "name"),
        time_limit_s=None if limit_min is None else limit_min * MINUTE_S,
        is_array=bool(value.number(job, "array_job_id")),
        interactive=value.at(job, "batch_flag") is False,
    )


def requests_of(jobs: Iterable[RunningJob]) -> list[JobRequest]:
    """Return the requests of scontrol's records; one without a submit time cannot be placed and is left out."""
    return [
        request_from_tres(
            job.req_tres,
            user=job.user,
            submit=job.submit,
            account=job.account,
            partition=job.partition,
            qos=job.qos,
            name=job.name,
            time_limit_s=job.time_limit_s,
            is_array=job.array_job_id is not None,
            interactive=not job.batch,
        )
        for job in jobs
        if job.submit is not None
    ]


def request_from_tres(tres: str, **known: Any) -> JobRequest:
    """Build a request whose amounts come from a printed TRES list; a list that is none leaves them unknown."""
    try:
        amounts = parse_tres(tres)
        gpus, mem_b = gpu_count(amounts), memory_b(amounts)
    except ParseError:
        amounts, gpus, mem_b = {}, gpu_count({}), None
    return JobRequest(
        nodes=_whole(amounts.get("node")),
        cpus=_whole(amounts.get("cpu")),
        mem_b=mem_b,
        gpus=gpus.total,
        gpu_type=gpus.type,
        **known,
    )


def _whole(text: str | None) -> int | None:
    """Return a count: Slurm prints a large one as 1K or 1.50M."""
    try:
        return None if text is None else (int(text) if text.isdigit() else parse_size_b(text))
    except (ParseError, ValueError):
        return None
