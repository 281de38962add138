"""JobTables from the hub's store: equal to `table_of` of the same runs, without a Python loop over them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.underuse import UNDER_USE, UnderUse
from gpuwaste.jobs.history.history_snapshot import OpenRun
from gpuwaste.jobs.history.job_table import Categories, Floats, GpuEnergy, JobTable, known_at
from gpuwaste.jobs.history.outcome import outcome_of
from gpuwaste.jobs.run_store import FAR_S, JobColumns, Submitted, job_columns, last_event, submissions
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import request_of
from gpuwaste.store.database import Database

TABLE_RUNS: Final = 100_000
_PLAIN: Final = ("user", "account", "partition", "qos", "name")  # text columns of store and table


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A table, and the newest event of the history stream that it contains: a follower continues after that one.

    What happened before `since`, UTC seconds, is in earlier tables.
    """

    table: JobTable
    last_event: int
    since: int = -FAR_S


def read_table(db: Database, cluster: str, under_use: UnderUse = UNDER_USE, *, energy: bool = False) -> TableSnapshot:
    """Return every run of a cluster, pending and running ones included, by a rule of under-use. Raises StoreError."""
    with db.transaction():
        columns = job_columns(db, cluster, under_use, energy=energy)
        return TableSnapshot(_table(columns, under_use), last_event(db))


def read_tables(
    db: Database,
    cluster: str,
    under_use: UnderUse,
    open_runs: Callable[[], Mapping[tuple[int, int], OpenRun]],
    most: int = TABLE_RUNS,
) -> Iterator[TableSnapshot]:
    """Yield the runs of a cluster in tables of about `most`, each as known when the next one begins.

    All are of one instant of the store. Replayed one after the other they give the same as `read_table` at once, in a
    fraction of the memory; `open_runs` returns the runs that the replay has in the system when the next table is made.
    Raises StoreError.
    """
    with db.transaction():
        last = last_event(db)
        for since, until in _spans(submissions(db, cluster), most):
            held = [(*run, of_run.ended) for run, of_run in open_runs().items()]
            table = _table(job_columns(db, cluster, under_use, Submitted(since, until, held)), under_use)
            yield TableSnapshot(table if until == FAR_S else known_at(table, until), last, since)


def _spans(hours: Sequence[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    """Yield spans that together cover all time, each with at most `most` submissions unless one hour has more."""
    since, runs = -FAR_S, 0
    for hour, count in hours:
        if runs and runs + count > most:
            yield since, hour
            since, runs = hour, 0
        runs += count
    yield since, FAR_S


def _table(columns: JobColumns, under_use: UnderUse) -> JobTable:
    found = _joined(columns.numbers)
    values = {name: found[name] for name in ("job_id", "submit", "start", "end", "ledger_at")}
    values |= {
        name: found[name] for name in ("limit_s", "run_s", "alloc_cpus", "max_rss_b", "used_ratio", "gpus_active")
    }
    values |= {name: found[name] for name in ("gpu_coverage", "gpus_used", "is_array", "interactive")}
    values |= {name: Categories(found[name], columns.texts[name]) for name in _PLAIN}
    values |= _amounts(columns.texts["req_tres"], found["req_tres"])
    outcome = _outcomes(columns.texts["state"], found["state"], found["start"] >= 0)
    found_energy = None if columns.energy is None else _energy(columns.energy)
    return JobTable(outcome=outcome, end_rule=columns.end_rule, under_use=under_use, energy=found_energy, **values)


def _joined(slices: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return full columns; a slice's array is released as soon as it is copied into them."""
    return {name: np.concatenate([part.pop(name) for part in slices]) for name in list(slices[0])}


def _energy(columns: Mapping[str, Any]) -> GpuEnergy:
    amounts = {name: columns[name] for name in ("joules", "seconds", "idle_joules", "idle_seconds")}
    return GpuEnergy(gpu_type=Categories.of(columns["gpu_type"].tolist()), **amounts)


def _amounts(texts: tuple[str, ...], codes: NDArray[np.int32]) -> dict[str, Floats | Categories]:
    """Return the columns in ReqTRES; each different text is parsed once, with the same parser as everywhere else."""
    asked = [request_of(JobRecord("", 0, 0, req_tres=text)) for text in texts]
    types = Categories.of(request.gpu_type for request in asked)

    def amount(name: str) -> Floats:
        known = (getattr(request, name) for request in asked)
        return np.array([np.nan if v is None else v for v in known], dtype=np.float64)[codes]

    return {name: amount(name) for name in ("nodes", "cpus", "mem_b", "gpus")} | {
        "gpu_type": types.take(codes.astype(np.intp))
    }


def _outcomes(states: tuple[str, ...], codes: NDArray[np.int32], started: NDArray[np.bool_]) -> NDArray[np.uint8]:
    classes = [[outcome_of(state, started=yes) for state in states] for yes in (False, True)]
    return np.array(classes, dtype=np.uint8).reshape(2, -1)[started.astype(np.intp), codes]
