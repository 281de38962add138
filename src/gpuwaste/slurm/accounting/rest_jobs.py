"""Accounting as JSON: slurmrestd's /slurmdb/VERSION/jobs and `sacct --json`, which write the same, as JobRecords.

Each job holds its steps, so a run is read from one item: memory is the largest of a step's, processor time the sum over
the steps (up to 24.11 the job's own is 0). Texts and amounts come out as sacct prints them, so that a run read here and
one read by sacct_row are equal; what cannot be equal is listed in testing/rest_differences.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.text import storable
from gpuwaste.core.units import MINUTE_S
from gpuwaste.slurm.accounting import rest_value as value
from gpuwaste.slurm.accounting.accounted_run import AccountedRun
from gpuwaste.slurm.accounting.bounds import within
from gpuwaste.slurm.accounting.interactive import is_interactive
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.accounting.rest_steps import RestSteps
from gpuwaste.slurm.accounting.sacct import BadRow
from gpuwaste.slurm.accounting.tres import count_of_tres, held_gpus, memory_b, parse_tres
from gpuwaste.slurm.formats.bitmap import task_text
from gpuwaste.slurm.formats.hostlist import NO_NODES
from gpuwaste.slurm.formats.times import own_start
from gpuwaste.slurm.verdict_token import token_of

_KEPT: Final = 2000
_NOT_ACCOUNTED: Final = (
    "a job as squeue --json and scontrol --json write it, not one of accounting: write the file with sacct --json"
)


def parse_page(data: bytes, cluster: str) -> Iterator[JobRecord | BadRow]:
    """Yield a JobRecord for each job of a page and a BadRow, its line the job's number, for what cannot be read.

    `cluster` is the one asked for; "" takes each job's own. Raises ParseError where the page is no JSON with jobs,
    SlurmError where it holds an error; both before the first row.
    """
    yield from records(value.jobs(data), cluster)


def records(items: list[Any], cluster: str) -> Iterator[JobRecord | BadRow]:
    """Yield what `parse_page` does, from the jobs of a page."""
    for line, item in enumerate(items, 1):
        try:
            steps = RestSteps(item)
            run = _record(item, cluster, steps)
        except GpuwasteError as error:
            yield BadRow(line, str(error), _shown(item))
            continue
        for name, reason in steps.unread.items():
            yield BadRow(line, f"{name}: {reason}", _shown(item), name)
        yield run


def _shown(item: Any) -> str:
    return storable(json.dumps(item, ensure_ascii=False))[:_KEPT]


def _record(job: Any, cluster: str, steps: RestSteps) -> AccountedRun:
    own = value.text(job, "cluster")
    if cluster and own and own != cluster:
        raise ParseError(f"cluster: a job of {own}, where {cluster} was requested")
    job_id = value.number(job, "job_id")
    submit = value.time_s(job, "time", "submission")
    if value.at(job, "time") is None and value.at(job, "job_state") is not None:
        raise ParseError(_NOT_ACCOUNTED)
    if not job_id or submit is None:
        raise ParseError("job_id or time.submission is missing")
    end = value.time_s(job, "time", "end")
    start = own_start(submit, value.time_s(job, "time", "start"), value.number(job, "time", "elapsed"))
    state = value.state(job, "state", "current")
    requested = value.tres_text(job, "tres", "requested")
    asked = parse_tres(requested)
    allocated = value.tres_text(job, "tres", "allocated")
    granted = parse_tres(allocated)
    gpus = held_gpus(granted, requested, started=start is not None)
    limit_min = value.number(job, "time", "limit")
    code, signal = value.exit_of(job, "exit_code")
    submit_line = value.text(job, "submit_line")
    ids = _ids(job, job_id)
    return within(
        AccountedRun(
            cluster=cluster or own,
            job_id=job_id,
            submit=submit,
            **ids,
            name=value.text(job, "name"),
            user=value.text(job, "user") or value.text(job, "association", "user"),  # the latter is empty in 26.05
            account=value.text(job, "account"),
            group=value.text(job, "group"),
            partition=value.text(job, "partition"),
            qos=value.text(job, "qos"),
            time_limit_s=limit_min * MINUTE_S if limit_min else None,
            req_tres=requested,
            submit_line=submit_line,
            interactive=is_interactive(submit_line, steps.names, het_part=bool(ids["het_offset"])),
            verdict_id=_verdict_id(job),
            start=start,
            restarts=value.number(job, "restart_cnt"),
            nodes=_nodes(job),
            n_nodes=value.number(job, "allocation_nodes")
            or count_of_tres(granted, "node")
            or count_of_tres(asked, "node"),
            cpus=count_of_tres(granted, "cpu") or _cpus_before_start(job),
            gpus=None if gpus is None else gpus.total,
            gpu_type="" if gpus is None else gpus.type,
            alloc_tres=allocated,
            mem_req_b=memory_b(asked) or memory_b(granted),
            end=end,
            elapsed_s=value.number(job, "time", "elapsed") if start is not None else None,
            suspended_s=value.number(job, "time", "suspended") or 0,
            state=state,
            exit_code=0 if code is None and state == "COMPLETED" else code,
            exit_signal=signal,
            total_cpu_s=steps.total_cpu_s(job, end),
            max_rss_b=steps.max_rss_b,
            details=steps.details(job),
            steps=tuple(steps.sums.kept),
        )
    )


def _ids(job: Any, job_id: int) -> dict[str, Any]:
    """Return printed_id and the ids of arrays and het jobs."""
    array = value.number(job, "array", "job_id") or None
    task = value.number(job, "array", "task_id") if array else None
    het = value.number(job, "het", "job_id") or None
    offset = value.number(job, "het", "job_offset") if het else None
    printed = str(job_id)
    if array and task is not None:
        printed = f"{array}_{task}"
    elif array:
        waiting = value.text(job, "array", "task")
        limit = value.number(job, "array", "limits", "max", "running", "tasks")
        printed = f"{array}_[{task_text(waiting)}{f'%{limit}' if limit and '%' not in waiting else ''}]"
        if not waiting:  # all its tasks have rows of their own; from 24.11 a job without tasks has an array id too
            printed, array = str(job_id), None
    elif het and offset is not None:
        printed = f"{het}+{offset}"
    return {
        "printed_id": printed,
        "array_job_id": array,
        "array_task_id": task,
        "het_job_id": het if offset is not None else None,
        "het_offset": offset,
    }


def _verdict_id(job: Any) -> str:
    """Return the token in the administrators' comment; a `comment` that is one text is the user's own."""
    return token_of(value.text(job, "comment", "administrator")) if isinstance(value.at(job, "comment"), dict) else ""


def _nodes(job: Any) -> str:
    nodes = value.text(job, "nodes")
    return "" if nodes in NO_NODES else nodes


def _cpus_before_start(job: Any) -> int | None:
    """Return AllocCPUS of a run without an allocation as its sacct prints it: what is asked in 22.05, 0 in 24.11."""
    return 0 if value.newer(job, "time", "limit") else value.number(job, "required", "CPUs")
