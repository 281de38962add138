"""Runs as rows: the columns of tables jobs and steps, and a record of a row."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from operator import itemgetter
from typing import Any, Final

from gpuwaste.core.text import storable
from gpuwaste.slurm.accounting.job import AccountedRun, JobDetails, JobRecord, StepRecord
from gpuwaste.store.hub.json_rows import Columns

_DETAIL_COLUMNS: Final = Columns(JobDetails)
JOB_COLUMNS: Final = Columns(JobRecord, {"run_start": "BIGINT", **_DETAIL_COLUMNS.types})
_NO_DETAILS: Final = dict.fromkeys(_DETAIL_COLUMNS.types)
STEP_COLUMNS: Final = Columns(StepRecord, {"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"})
_JOB_VALUES: Final = itemgetter(*(f.name for f in fields(JobRecord)))


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
