"""Small histories for tests of what-ifs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuwaste.jobs.history.job_table import GpuUse, JobTable, table_of
from gpuwaste.sim.trace import Trace, trace_of
from gpuwaste.sim.whatif import WhatIfCase
from gpuwaste.slurm.accounting.job_record import JobRecord


class Ran(NamedTuple):
    """One job: seconds, GPUs asked for, GPUs that were active (None: the ledger does not know)."""

    submit: int
    run: int
    limit: int
    size: int = 1
    user: str = "u"
    active: int | None = None
    wait: int = 0
    low: int = 0  # GPUs beside the active ones that were used, at a mean below the limit of under-use


def history(jobs: Sequence[Ran]) -> JobTable:
    """Return the table of jobs in order of submission; ids are places."""
    records, uses = [], []
    for place, job in enumerate(jobs):
        start = job.submit + job.wait
        records.append(
            JobRecord(
                "c",
                place,
                job.submit,
                user=job.user,
                account="a",
                partition="p",
                time_limit_s=job.limit,
                req_tres=f"cpu={job.size},gres/gpu={job.size}",
                start=start,
                cpus=job.size,
                end=start + job.run,
                elapsed_s=job.run,
                state="COMPLETED",
            )
        )
        known = None
        if job.active is not None:
            known = GpuUse(0.5, job.active, 1.0, start + job.run, gpus_used=job.active + job.low)
        uses.append(known)
    return table_of(records, use=uses)


def case_of(table: JobTable, processors: int = 64, resource: str = "gpus") -> WhatIfCase:
    """Return the case of a whole table."""
    trace, _ = trace_of(table, processors, resource)
    return WhatIfCase(table, trace, processors, resource, table, np.arange(len(table)))


def waited(trace: Trace, waits: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return starts by the waits of jobs."""
    return trace.submit + np.array(waits, dtype=np.int64)


def some(trace: Trace, rows: Sequence[int]) -> Trace:
    """Return a trace of some rows."""
    return replace(trace.take(np.array(rows, dtype=np.intp)))
