"""Rows as the hub's store takes them: JSON arrays, which DuckDB reads a hundred times faster than bound values."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from gpuwaste.core.hour import AllocationHour
from gpuwaste.core.job import JobRecord
from gpuwaste.core.text import storable
from gpuwaste.core.verdict import Verdict

_JOB_FIELDS: Final = tuple(f.name for f in fields(JobRecord))
_JOB_TEXTS: Final = tuple(f.name for f in fields(JobRecord) if f.type is str)
_job_values = attrgetter(*_JOB_FIELDS)


def to_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the rows as one JSON array; a NaN is refused with ValueError."""
    return json.dumps(list(rows), allow_nan=False, separators=(",", ":"))


def hour_row(hour: AllocationHour) -> dict[str, Any]:
    """Return the columns of table hours."""
    run = hour.run_key
    util = sorted(hour.util_ms.items())
    unknown = sorted(hour.unknown_ms.items())
    return {
        "cluster": run.cluster,
        "job_id": run.job_id,
        "run_start": run.start,
        "node": hour.node,
        "gpu_uuid": hour.gpu_uuid,
        "hour_utc": hour.hour_utc,
        "seq": hour.seq,
        "final": hour.final,
        "share": hour.share,
        "t0_ms": hour.t0_ms,
        "t1_ms": hour.t1_ms,
        "pct": [pct for pct, _ in util],
        "util_ms": [ms for _, ms in util],
        "idle_run_ms": hour.idle_run_ms,
        "unknown_reason": [reason for reason, _ in unknown],
        "unknown_ms": [ms for _, ms in unknown],
        "suspended_ms": hour.suspended_ms,
        "proc_seen": hour.proc_seen,
        "mem_max_b": hour.mem_max_b,
        "mem_total_b": hour.mem_total_b,
        "energy_j": hour.energy_j,
        "last_active_ms": hour.last_active_ms,
        "power_w_at_full": hour.power_w_at_full,
        "power_limit_w": hour.power_limit_w,
        "sm_ratio_at_full": hour.sm_ratio_at_full,
        "cpu_s": hour.cpu_s,
        "host_mem_max_b": hour.host_mem_max_b,
        "map_source": hour.map_source,
        "confidence": hour.confidence,
    }


def job_row(job: JobRecord) -> dict[str, Any]:
    """Return the columns of table jobs."""
    row = dict(zip(_JOB_FIELDS, _job_values(job), strict=True))
    row["run_start"] = job.submit if job.start is None else job.start
    row["printed_id"] = job.printed_id or str(job.job_id)
    for name in _JOB_TEXTS:
        text = row[name]
        if not text.isascii() or "\0" in text:
            row[name] = storable(text)
    return row


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """Return the columns of table verdicts that the verdict tells."""
    row: dict[str, Any] = {}
    for name, value in verdict.to_json().items():
        if isinstance(value, str):
            row[name] = storable(value)
        elif isinstance(value, list | tuple):
            row[name] = [storable(text) for text in value]
        elif name in {"p", "triggers"}:
            row[name] = {storable(target): number for target, number in value.items()}
        else:
            row[name] = value
    return row | {"quantiles": storable(json.dumps(verdict.to_json()["quantiles"]))}


def job_record(row: Mapping[str, Any]) -> JobRecord:
    """Return the JobRecord of a row of table jobs."""
    return JobRecord(**{name: row[name] for name in _JOB_FIELDS})


def job_names(printed_id: str, accounts: Collection[str] | None, reader: str | None) -> dict[str, Any]:
    """Return the named parameters of query ledger_job_runs: the job, and the scope of who asks.

    `accounts` keeps to runs of these accounts and, where `reader` is given, to that user's own; None is every run.
    """
    return {
        "printed_id": printed_id,
        "number": int(printed_id) if printed_id.isdecimal() else None,
        "accounts": None if accounts is None else sorted(accounts),
        "reader": reader,
    }
