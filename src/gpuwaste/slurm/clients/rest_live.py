"""slurmctld's jobs as slurmrestd tells them (/slurm/VERSION/job/ID): what was asked for, as JobRequests."""

from collections.abc import Iterable
from typing import Any

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import MINUTE_S
from gpuwaste.slurm.accounting import rest_value as value
from gpuwaste.slurm.clients.scontrol import RunningJob
from gpuwaste.slurm.submit.request import JobRequest, request_from_tres, request_like


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
        time_limit_s=limit_min * MINUTE_S if limit_min else None,
        is_array=bool(value.number(job, "array_job_id")),
        interactive=value.at(job, "batch_flag") is False,
        whole_node=_whole_node(job),
    )


def _whole_node(job: Any) -> bool | None:
    """Tell whether whole nodes are asked for: `shared` is "none" in 22.05, holds "none" from 24.11 on."""
    found = job.get("shared", 0)
    if found is None or isinstance(found, str | list):
        return "none" in ([found] if isinstance(found, str) else found or ())
    return None


def requests_of(jobs: Iterable[RunningJob]) -> list[JobRequest]:
    """Return the requests of scontrol's records; one without a submit time cannot be placed and is left out."""
    return [
        request_like(job, interactive=not job.batch, whole_node=job.exclusive) for job in jobs if job.submit is not None
    ]
