"""Accounting as JSON (slurmrestd's /slurmdb/VERSION/jobs and `sacct --json`, which write the same) as JobRecords.

Each job holds its steps, so a run is read from one item: memory is the largest of a step's, processor time the sum over
the steps (up to 24.11 the job's own is 0). Texts and amounts are returned as sacct prints them, so that a run read here
and one read by sacct_row are equal; what cannot be equal is listed in testing/rest_differences.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.text import storable
from gpuwaste.core.units import HOUR_S, MINUTE_S
from gpuwaste.slurm.accounting import rest_value as value
from gpuwaste.slurm.accounting.accounted_use import MEMORY, UTIL, AccountedUse, StepPeaks
from gpuwaste.slurm.accounting.job_record import (
    AccountedRun,
    JobDetails,
    JobRecord,
    StepRecord,
    StepSums,
    flag_text,
    own_text,
    program_of,
    short,
    within,
)
from gpuwaste.slurm.accounting.jobstats_comment import jobstats_use
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.accounting.tres_amounts import count_of_tres, held_gpus, memory_b, parse_tres
from gpuwaste.slurm.formats.hostlist import NO_NODES, task_text
from gpuwaste.slurm.formats.printed_run import is_interactive, token_of
from gpuwaste.slurm.formats.slurm_times import own_start

_KEPT: Final = 2000
_NOT_ACCOUNTED: Final = (
    "a job as squeue --json and scontrol --json write it, not one of accounting: write the file with sacct --json"
)
_MICRO: Final = 1_000_000
_DISK: Final = "fs/disk"
_T = TypeVar("_T")


def parse_page(data: bytes, cluster: str) -> Iterator[JobRecord | BadRow]:
    """Yield a JobRecord for each job of a page and a BadRow, its line the job's number, for what cannot be read.

    `cluster` is the requested one; "" takes each job's own. Raises ParseError where the page is not JSON with jobs,
    SlurmError where it holds an error; both before the first row.
    """
    yield from records(value.jobs(data), cluster)


def records(items: list[Any], cluster: str) -> Iterator[JobRecord | BadRow]:
    """Yield what `parse_page` does, from the jobs of a page."""
    for line, item in enumerate(items, 1):
        try:
            steps = _RestSteps(item)
            run = _record(item, cluster, steps)
        except GpuwasteError as error:
            yield BadRow(line, str(error), _shown(item))
            continue
        for name, reason in steps.unread.items():
            yield BadRow(line, f"{name}: {reason}", _shown(item), name)
        yield run


def _shown(item: Any) -> str:
    return storable(json.dumps(item, ensure_ascii=False))[:_KEPT]


class _RestSteps:
    """Sums over a job's steps; `unread` maps the details that cannot be read to the reason."""

    def __init__(self, job: Any) -> None:
        """Read the steps. Raises ParseError where their time or memory cannot be read."""
        self.max_rss_b: int | None = None
        self._cpu_us = 0
        self.names: set[str] = set()
        self.sums = StepSums()
        self._peaks = StepPeaks()
        self.unread: dict[str, str] = {}
        steps = value.at(job, "steps")
        if steps is not None and not isinstance(steps, list):
            raise ParseError("steps: expected a list")
        for step in steps or ():
            self._add(step)

    def total_cpu_s(self, job: Any, end: int | None) -> float | None:
        """Return seconds, as precise as sacct prints them; a running job has none yet."""
        best = max(self._cpu_us, _cpu_us(job))
        if not best and end is None:
            return None
        seconds = best // _MICRO
        return float(seconds) if seconds >= HOUR_S else best // 1000 / 1000

    def details(self, job: Any) -> JobDetails:
        """Return the details of the run."""
        own_j = self._noted("tres.allocated", lambda: dict(value.tres_items(job, "tres", "allocated")).get("energy"))
        sums = self.sums
        return JobDetails(
            eligible=self._noted("time.eligible", lambda: value.time_s(job, "time", "eligible")),
            priority=self._noted("priority", lambda: value.number(job, "priority")),
            flags=self._noted(
                "flags", lambda: flag_text(map(str, value.at(job, "flags"))) if _has(job, "flags") else None
            ),
            reason=self._noted("state.reason", lambda: _text(job, own_text, "state", "reason")),
            constraints=self._noted("constraints", lambda: _text(job, short, "constraints")),
            reservation=self._noted("reservation.name", lambda: _reservation(job)),
            n_steps=sums.n_steps,
            energy_j=own_j or sums.energy_j,
            disk_read_b=sums.disk_read_b,
            disk_write_b=sums.disk_write_b,
            program=self._noted("comment", lambda: _program(job)),
        )

    def uses(self, job: Any, gpus: int | None, start: int | None, end: int | None) -> tuple[AccountedUse, ...]:
        """Return what accounting has of the use of the run's GPUs."""
        if not gpus:
            return ()
        told = self._noted("comment.administrator", lambda: jobstats_use(_admin_comment(job), gpus, start, end))
        return (*(told or ()), *self._peaks.use())

    def _add(self, step: Any) -> None:
        name = _name(step)
        self.names.add("0" if name[:1].isdigit() else name)  # constant memory for any number of steps
        self._cpu_us += _cpu_us(step)
        peaks = dict(value.tres_items(step, "tres", "requested", "max"))
        rss_b = peaks.get("mem")  # bytes here, unlike in an allocation
        if rss_b is not None:
            self.max_rss_b = max(rss_b, self.max_rss_b or 0)
        self._peaks.add(name, peaks.get(UTIL), peaks.get(MEMORY))
        self.sums.add(
            name,
            self._noted("steps", lambda: _step_record(step, name, rss_b)),
            self._noted("steps.energy", lambda: value.number(step, "statistics", "energy", "consumed")),
            self._noted("steps.tres", lambda: dict(value.tres_items(step, "tres", "requested", "total")).get(_DISK)),
            self._noted("steps.tres", lambda: dict(value.tres_items(step, "tres", "consumed", "total")).get(_DISK)),
        )

    def _noted(self, name: str, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except GpuwasteError as error:
            self.unread.setdefault(name, str(error)[:200])
            return None


def _record(job: Any, cluster: str, steps: _RestSteps) -> AccountedRun:
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
            uses=steps.uses(job, None if gpus is None else gpus.total, start, end),
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
        if not waiting:  # all its tasks have their own rows; from 24.11 a job without tasks has an array id too
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
    """Return the token in the administrators' comment."""
    return token_of(_admin_comment(job))


def _admin_comment(job: Any) -> str:
    """Return the administrators' comment; a `comment` that is one text is the user's own."""
    return value.text(job, "comment", "administrator") if isinstance(value.at(job, "comment"), dict) else ""


def _nodes(job: Any) -> str:
    nodes = value.text(job, "nodes")
    return "" if nodes in NO_NODES else nodes


def _cpus_before_start(job: Any) -> int | None:
    """Return AllocCPUS of a run without an allocation as its sacct prints it: the request in 22.05, 0 in 24.11."""
    return 0 if value.newer(job, "time", "limit") else value.number(job, "required", "CPUs")


def _name(step: Any) -> str:
    """Return 0, 0+1, batch, extern, interactive: the text of v0.0.38, from 12.batch of v0.0.40 on.

    v0.0.39 has an object with the job's id and, for a component of a heterogeneous step, its number.
    """
    if not isinstance(value.at(step, "step", "id"), dict):
        return value.text(step, "step", "id").rpartition(".")[2]
    component = value.number(step, "step", "id", "step_het_component")
    return value.text(step, "step", "id", "step_id") + ("" if component is None else f"+{component}")


def _step_record(step: Any, name: str, rss_b: int | None) -> StepRecord | None:
    """Return a step; None where it has not ended."""
    if value.time_s(step, "time", "end") is None:
        return None
    state = value.state(step, "state")
    code, signal = value.exit_of(step, "exit_code")
    return StepRecord(
        step=name,
        name=short(value.text(step, "step", "name")),
        start=value.time_s(step, "time", "start"),
        elapsed_s=value.number(step, "time", "elapsed"),
        tasks=value.number(step, "tasks", "count"),
        max_rss_b=rss_b,
        state=state,
        exit_code=0 if code is None and state == "COMPLETED" else code,
        exit_signal=signal,
    )


def _reservation(job: Any) -> str | None:
    """Return the reservation's name; v0.0.38 has a number in its place."""
    found = value.at(job, "reservation", "name")
    return None if isinstance(found, int) else _text(job, short, "reservation", "name")


def _program(job: Any) -> str:
    """Return what ties the job to a program; a `comment` that is one text is the user's own."""
    path = ("comment", "job") if isinstance(value.at(job, "comment"), dict) else ("comment",)
    return program_of(value.text(job, *path), value.text(job, "submit_line"))


def _has(job: Any, name: str) -> bool:
    return isinstance(value.at(job, name), list)


def _text(job: Any, read: Callable[[str], str], *path: str) -> str | None:
    return None if value.at(job, *path) is None else read(value.text(job, *path))


def _cpu_us(found: Any) -> int:
    seconds = value.number(found, "time", "total", "seconds") or 0
    return seconds * _MICRO + (value.number(found, "time", "total", "microseconds") or 0)
