"""Rows as the hub's store takes them: JSON arrays, which DuckDB reads a hundred times faster than bound values."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from operator import itemgetter
from typing import Any, Final

from gpuwaste.core.text import storable
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.accounting.accounted_run import AccountedRun, JobDetails, StepRecord
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.store.hub.columns import Columns

HOUR_COLUMNS: Final = Columns(AllocationHour)
HOUR_KEY: Final = ("cluster", "job_id", "run_start", "node", "gpu_uuid", "hour_utc")
_DETAIL_COLUMNS: Final = Columns(JobDetails)
JOB_COLUMNS: Final = Columns(JobRecord, {"run_start": "BIGINT", **_DETAIL_COLUMNS.types})
_NO_DETAILS: Final = dict.fromkeys(_DETAIL_COLUMNS.types)
STEP_COLUMNS: Final = Columns(StepRecord, {"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"})
VERDICT_COLUMNS: Final = Columns(Verdict, {"node": "VARCHAR", "taken_utc": "BIGINT"})
NO_ROWS: Final = "[]"
_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # but not of a text that has these six characters
_JOB_VALUES: Final = itemgetter(*(f.name for f in fields(JobRecord)))


def to_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the rows as one JSON array, each NUL as `storable` writes it; a NaN is refused with ValueError."""
    text = json.dumps(list(rows), allow_nan=False, separators=(",", ":"))
    return _NUL.sub(r"\1\\\\x00", text) if "\\u0000" in text else text


def job_row(job: JobRecord) -> dict[str, Any]:
    """Return the columns of table jobs."""
    row = JOB_COLUMNS.row(job)
    row["run_start"] = job.submit if job.start is None else job.start
    row["printed_id"] = row["printed_id"] or str(job.job_id)
    return row | (_DETAIL_COLUMNS.row(job.details) if isinstance(job, AccountedRun) else _NO_DETAILS)


def step_rows(jobs: Iterable[JobRecord]) -> Iterator[dict[str, Any]]:
    """Yield the columns of table steps for the steps of some runs."""
    for job in jobs:
        if isinstance(job, AccountedRun) and job.steps:
            key = job.run_key
            run = {"cluster": storable(key.cluster), "job_id": key.job_id, "run_start": key.start}
            yield from (STEP_COLUMNS.row(step) | run for step in job.steps)


def job_record(row: Mapping[str, Any]) -> JobRecord:
    """Return the JobRecord of a row of table jobs."""
    return JobRecord(*_JOB_VALUES(row))
