"""Small makers of jobs and hours rows, and their insertion into a hub store."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any

from gpuwaste.ledger.hour import HOUR_MS, AllocationHour
from gpuwaste.ledger.judged_run import JudgedRun, judged_last
from gpuwaste.ledger.ledger import DeviceUse, JobLedger, LedgerSettings
from gpuwaste.ledger.run_judging import Selection, job_ledgers, judge_runs, judge_seen, name_causes
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.database import MEMORY, Database
from gpuwaste.store.hub.json_rows import to_json

GIB = 1024**3
T0 = 1_750_000_000 // 3600 * 3600  # a whole hour
SETTINGS = LedgerSettings()
LATER = T0 + 40 * 86400  # everything is shipped by then


def job(job_id: int = 7, seconds: int | None = 3600, **changes: Any) -> JobRecord:
    """Return a completed run of `seconds` from T0 on (None: still running) with one GPU and eight CPUs."""
    base = JobRecord(
        cluster="gw",
        job_id=job_id,
        submit=T0 - 60,
        printed_id=str(job_id),
        name="train",
        user="alice",
        account="physics",
        group="users",
        partition="gpu",
        qos="normal",
        time_limit_s=7200,
        req_tres="cpu=8,gres/gpu=1",
        start=T0,
        restarts=0,
        nodes="gpu1",
        n_nodes=1,
        cpus=8,
        gpus=1,
        gpu_type="a100",
        mem_req_b=64 * GIB,
        end=None if seconds is None else T0 + seconds,
        elapsed_s=seconds,
        state="RUNNING" if seconds is None else "COMPLETED",
        total_cpu_s=None if seconds is None else 2.0 * seconds,
        max_rss_b=None if seconds is None else 16 * GIB,
    )
    made = replace(base, **changes)
    if made.start is not None and made.end is not None and "elapsed_s" not in changes:
        made = replace(made, elapsed_s=made.end - made.start)
    return made


def use(gpu: int = 0, seconds: int = 3600, util: dict[int, int] | None = None, **changes: Any) -> DeviceUse:
    """Return what was seen of one GPU: `util` maps percent to seconds (all of it at 90 % unless told)."""
    util = {90: seconds} if util is None else util
    made = DeviceUse(
        node="gpu1",
        gpu_uuid=f"GPU-{gpu}",
        t0_ms=T0 * 1000,
        t1_ms=(T0 + seconds) * 1000,
        final=True,
        known_ms=sum(util.values()) * 1000,
        idle_ms=util.get(0, 0) * 1000,
        low_ms=sum(s for p, s in util.items() if 0 < p < 33) * 1000,
        high_ms=sum(s for p, s in util.items() if p > 66) * 1000,
        pct_ms=sum(p * s for p, s in util.items()) * 1000,
        idle_run_ms=util.get(0, 0) * 1000,
        proc_seen=any(util),
        mem_max_b=4 * GIB if any(util) else 0,
        mem_total_b=40 * GIB,
        last_active_ms=(T0 + seconds) * 1000 if any(util) else None,
        map_source="prolog",
        confidence="confirmed",
    )
    return replace(made, **changes)


def untouched(gpu: int = 0, seconds: int = 3600, **changes: Any) -> DeviceUse:
    """Return a GPU on which nothing ever ran."""
    return use(gpu, seconds, {0: seconds}, **changes)


def judged(record: JobRecord, *uses: DeviceUse, now: int = LATER, whole_node: bool = False) -> JobLedger:
    """Judge one run with the default thresholds."""
    ((_, ledger),) = job_ledgers(judge_many([(record, uses)], now=now, whole_node=whole_node))
    return ledger


def judged_run(record: JobRecord, *uses: DeviceUse, now: int = LATER, whole_node: bool = False) -> JudgedRun:
    """Judge one run with the default thresholds, and sum it up."""
    (run,) = judged_last(judge_many([(record, uses)], now=now, whole_node=whole_node))
    return run


@cache
def _empty() -> Database:
    """Return a store in whose temporary tables runs are judged: made once, since that takes its time."""
    db = store([job()], [])
    assert judge_runs(db, Selection(), SETTINGS, LATER)
    return db


def judge_many(
    runs: Sequence[tuple[JobRecord, Sequence[DeviceUse]]],
    settings: LedgerSettings = SETTINGS,
    now: int = LATER,
    window: tuple[int, int | None] = (0, None),
    *,
    whole_node: bool = False,
) -> Database:
    """Judge runs by what was seen of their GPUs; returns the store, in whose temporary tables they are."""
    db = _empty()
    picked = [
        {"run_start": record.run_key.start, **asdict(record), "place": place, "whole_node": whole_node}
        for place, (record, _) in enumerate(runs, 1)
    ]
    seen = [
        {"place": place, "idle_before_ms": 0, "idle_run_before_ms": 0, **asdict(use)}
        for place, (_, uses) in enumerate(runs, 1)
        for use in uses
    ]
    for table, rows in (("picked_runs", picked), ("ledger_seen", seen)):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 own names
        types = dict(db.execute(f"SELECT column_name, column_type FROM (DESCRIBE {table})").fetchall())  # noqa: S608
        shape = {name: types[name] for name in (rows or [{}])[0]}
        if rows:
            db.execute(
                f"INSERT INTO {table} BY NAME SELECT unnest(from_json($rows::JSON, $shape), recursive := true)",
                {"rows": to_json(rows), "shape": json.dumps([shape])},
            )
    judge_seen(db, settings, now, window)
    name_causes(db, job_ledgers(db, candidates=True), settings)
    return db


def hour(record: JobRecord, gpu: int, index: int, util_s: dict[int, int], **changes: Any) -> AllocationHour:
    """Return the row of the `index`-th UTC hour after T0: `util_s` maps percent to seconds."""
    span = sum(util_s.values()) * 1000
    start = T0 * 1000 + index * HOUR_MS
    base = AllocationHour(
        run_key=record.run_key,
        node="gpu1",
        gpu_uuid=f"GPU-{gpu}",
        hour_utc=start // 1000,
        seq=1,
        t0_ms=start,
        t1_ms=start + span,
        final=True,
        util_ms={p: s * 1000 for p, s in util_s.items()},
        idle_run_ms=util_s.get(0, 0) * 1000,
        proc_seen=any(util_s),
        mem_max_b=4 * GIB if any(util_s) else 0,
        mem_total_b=40 * GIB,
        last_active_ms=start + span if any(util_s) else None,
        map_source="prolog",
        confidence="confirmed",
    )
    return replace(base, **changes)


def store(jobs: list[JobRecord], hours: list[AllocationHour]) -> Database:
    """Return a hub store in memory that holds these rows."""
    db = Database.open(MEMORY, "hub")
    add_rows(db, jobs, hours)
    return db


def add_rows(db: Database, jobs: list[JobRecord], hours: list[AllocationHour]) -> None:
    """Insert jobs and hours."""
    _insert(db, "jobs", [{"run_start": record.run_key.start, **asdict(record)} for record in jobs])
    _insert(db, "hours", [_hour_columns(row) for row in hours])


def load(db: Database, now: int = LATER, settings: LedgerSettings = SETTINGS, **selection: Any) -> list[JobLedger]:
    """Return the judged runs of a store."""
    return [ledger for _, ledger in job_ledgers(db)] if judge_runs(db, Selection(**selection), settings, now) else []


def _hour_columns(row: AllocationHour) -> dict[str, Any]:
    others = {"run_key", "util_ms", "unknown_ms", "xids"}
    columns = {f.name: getattr(row, f.name) for f in fields(row) if f.name not in others}
    key = row.run_key
    columns |= {"cluster": key.cluster, "job_id": key.job_id, "run_start": key.start}
    columns |= {"pct": list(row.util_ms), "util_ms": list(row.util_ms.values())}
    columns |= {"xid": list(row.xids), "xids": list(row.xids.values())}
    return columns | {"unknown_reason": list(row.unknown_ms), "unknown_ms": list(row.unknown_ms.values())}


def _insert(db: Database, table: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    names = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join("?" for _ in rows[0])
    values = ", ".join(f"({marks})" for _ in rows)  # one statement: each costs a plan of all columns
    db.execute(f"INSERT INTO {table} ({names}) VALUES {values}", [v for row in rows for v in row.values()])  # noqa: S608 own names
