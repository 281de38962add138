"""Runs in the hub's store: writes accounting's runs; reads the history stream, the runs of a job, columns of numbers.

It also stores which partitions allocate full nodes to a job. A function's writes are committed, and on disk, when it
returns. The columns are NumPy arrays (extra `predict`), made by DuckDB without a Python object for each row.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.scope import ClusterAccount, account_rows
from gpuwaste.core.underuse import UnderUse
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.job_event import EndRule, HistoryEvent, RunUse
from gpuwaste.jobs.run_changes import (
    JOB_COLUMNS,
    STEP_COLUMNS,
    USE_COLUMNS,
    job_record,
    job_row,
    judge_again,
    step_rows,
    take_changed,
    take_details,
    take_steps,
    take_uses,
    use_rows,
)
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

FAR_S: Final = 2**53
SLICE_RUNS: Final = 100_000  # whose GPUs are read at a time
_FIRST_NUMBER: Final = re.compile(r"[0-9]{1,18}(?![0-9])")


@dataclass(frozen=True, slots=True)
class JobColumns:
    """Runs by (submit, job_id, start): each slice of `numbers` maps a column of query job_table to its array [n].

    The numbers of a text column are codes; `texts` maps it to the texts by code, in the order of first occurrence.
    `end_rule` is the rule by which ends are known: "submit + run" for a log without waits.
    """

    numbers: Sequence[dict[str, Any]]
    texts: Mapping[str, tuple[str, ...]]
    end_rule: EndRule = "accounting"
    energy: Mapping[str, Any] | None = None
    """Columns of the query job_energy [n], where they were requested; gpu_type has texts, not codes."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """Selects the runs submitted in [since, until), UTC seconds, and some of the earlier runs in `held`.

    `held` are (job id, submission, whether it has ended); of those that have ended only runs are selected whose GPU use
    the hub has learned since. By default every run.
    """

    since: int = -FAR_S
    until: int = FAR_S
    held: Iterable[tuple[int, int, bool]] = ()


EVERY_RUN: Final = Submitted()


def last_event(db: Database) -> int:
    """Return the number of the newest event of the history stream, 0 without any. Raises StoreError."""
    return int(db.rows("last_event")[0]["seq"])


def submissions(db: Database, cluster: str) -> list[tuple[int, int]]:
    """Return each hour with submissions of a cluster: its start, UTC seconds, and their number. Raises StoreError."""
    return db.run("job_submissions", {"cluster": cluster}).fetchall()


def job_columns(
    db: Database, cluster: str, under_use: UnderUse, which: Submitted = EVERY_RUN, *, energy: bool = False
) -> JobColumns:
    """Read runs of a cluster and the ledger's results for them by a rule, within a transaction. Raises StoreError."""
    rules = db.rows("job_end_rule", {"cluster": cluster})
    held = to_json({"job_id": job_id, "submit": at, "ended": ended} for job_id, at, ended in which.held)
    db.run("job_table_pick", {"cluster": cluster, "since": which.since, "until": which.until, "held": held})
    db.run("job_table_texts")
    texts: dict[str, list[str]] = {
        kind: [] for kind in ("user", "account", "partition", "qos", "name", "req_tres", "state")
    }
    for kind, text in db.run("job_table_values").fetchall():
        texts[kind].append(text)
    found = _numbers(db, under_use)
    joules = db.run("job_energy").fetchnumpy() if energy else None
    db.run("job_table_drop")
    values = {kind: tuple(found_texts) for kind, found_texts in texts.items()}
    assumed = bool(rules) and rules[0]["end_rule"] == "submit + run"
    return JobColumns(found, values, "submit + run" if assumed else "accounting", joules)


def _numbers(db: Database, under_use: UnderUse) -> list[dict[str, Any]]:
    """Return the columns of the picked runs in slices: the GPU data of a million runs does not fit into memory."""
    runs = int(db.rows("job_table_count")[0]["runs"])
    limits = {"from_hour": 0, "to_hour": FAR_S, "active_pct": under_use.below_pct}
    return [
        db.run("job_table", {**limits, "first": first, "last": first + SLICE_RUNS}).fetchnumpy()
        for first in range(0, max(runs, 1), SLICE_RUNS)
    ]


def clusters(db: Database) -> list[str]:
    """Return the clusters that have runs in the store."""
    return [row["cluster"] for row in db.rows("job_clusters")]


def upsert_jobs(store: HubStore, jobs: Sequence[JobRecord]) -> int:
    """Store runs from accounting by their keys, with their events (jobs/job_event.py); return how many changed."""
    if not jobs:
        return 0
    rows = {job.run_key: job_row(job) for job in jobs}
    with store.writing() as db:
        db.run("jobs_stage_create")
        db.run("jobs_stage", {"rows": to_json(rows.values()), "shape": JOB_COLUMNS.shape})
        for query in ("jobs_known", "jobs_stage_keep", "jobs_changed", "jobs_detailed"):
            db.run(query)
        changed = take_changed(db, "jobs_delete_old")
        times = changed.removed
        if changed.runs:
            times += db.answer("jobs_changed_times").rows
            store.note_changes(((r.cluster, r.job_id, r.start) for r in rows), changed.first_end)
        steps = {"rows": to_json(step_rows(jobs)), "shape": STEP_COLUMNS.shape}
        take_steps(db, "steps_stage", steps)
        detailed = take_details(db)
        uses = take_uses(db, "uses_stage", {"rows": to_json(use_rows(jobs)), "shape": USE_COLUMNS.shape}, store.now())
        if uses.runs:
            store.note_changes(((r.cluster, r.job_id, r.start) for r in uses.runs), uses.first_end)
    store.touched.note([*times, *detailed])
    return changed.runs + len(detailed)


def open_run_keys(store: HubStore, cluster: str) -> dict[RunKey, int]:
    """Return the runs that have not ended in accounting, with their submit times."""
    with store.reader() as db:
        rows = db.rows("jobs_open", {"cluster": cluster})
    return {RunKey(cluster, row["job_id"], row["run_start"]): row["submit"] for row in rows}


def runs_of_id(store: HubStore, cluster: str, job_id: int) -> list[JobRecord]:
    """Return the runs of a job id, the newest first."""
    with store.reader() as db:
        return [job_record(row) for row in db.rows("jobs_of_id", {"cluster": cluster, "job_id": job_id})]


def runs_named(
    store: HubStore, printed_id: str, *, accounts: Collection[ClusterAccount] | None = None, reader: str | None = None
) -> list[JobRecord]:
    """Return every run of the job, array or het job that a printed or raw id (7, 3_1, 4+1) names.

    `accounts` limits the result to runs of these accounts and, where `reader` is given, that user's own.
    """
    with store.reader() as db:
        return pick_named(db, printed_id, accounts=accounts, reader=reader)


def pick_named(
    db: Database,
    printed_id: str,
    *,
    accounts: Collection[ClusterAccount] | None = None,
    reader: str | None = None,
) -> list[JobRecord]:
    """Return every run that an id names, and keep them picked on this connection, for a document about them.

    `accounts` limits the result to runs of these accounts and, where `reader` is given, that user's own; None: every
    run.
    """
    db.run("ledger_job_runs", _named_parameters(printed_id, accounts, reader))
    return [job_record(row) for row in db.rows("ledger_picked")]


def history_events(store: HubStore, after: int, limit: int) -> list[HistoryEvent]:
    """Return up to `limit` events of runs whose seq is greater than `after`, in order."""
    page = {"after": after, "limit": limit}
    with store.reader() as db:
        rows = db.rows("history", page)
        uses = _uses(db, rows, page, store.under_use)
    return [_event(row, uses) for row in rows]


def set_partitions(store: HubStore, cluster: str, whole_node: Mapping[str, bool]) -> None:
    """Replace a cluster's partitions: name -> whether jobs there hold whole nodes."""
    rows = [{"cluster": cluster, "name": name, "whole_node": whole} for name, whole in sorted(whole_node.items())]
    with store.writing() as db:
        if {row["name"] for row in db.rows("partitions_whole", {"cluster": cluster})} != {
            name for name, whole in whole_node.items() if whole
        }:
            store.note_changes((), 0)
        judge_again(store, db, "judged_forget_partitions", {"cluster": cluster, "rows": to_json(rows)})
        db.run("partitions_clear", {"cluster": cluster})
        if rows:
            db.run("partitions_add", {"rows": to_json(rows)})


def whole_node_partitions(store: HubStore, cluster: str) -> frozenset[str]:
    """Return the partitions of a cluster in which a job holds its nodes exclusively."""
    with store.reader() as db:
        return frozenset(str(row["name"]) for row in db.rows("partitions_whole", {"cluster": cluster}))


def _named_parameters(
    printed_id: str, accounts: Collection[ClusterAccount] | None, reader: str | None
) -> dict[str, Any]:
    number = _FIRST_NUMBER.match(printed_id)
    return {
        "printed_id": printed_id,
        "first": int(number[0]) if number else None,
        "number": printed_id.isdecimal(),
        "accounts": account_rows(accounts),
        "reader": reader,
    }


def _uses(
    db: Database, rows: Sequence[Mapping[str, Any]], page: Mapping[str, int], under_use: UnderUse
) -> dict[RunKey, RunUse]:
    """Return the ledger's results for the runs that ended among the events `rows` of a page."""
    held = [row for row in rows if row["job_id"] is not None and row["gpus"] and row["end"] is not None]
    if not held:
        return {}
    first = min(row["run_start"] for row in held)
    last = max(row["end"] for row in held)
    bounds = {"from_hour": first - first % HOUR_S, "to_hour": min(last, FAR_S), "active_pct": under_use.below_pct}
    return {
        RunKey(row["cluster"], row["job_id"], row["run_start"]): RunUse(
            float(row["used_ratio"]), int(row["gpus_active"]), float(row["coverage"]), int(row["gpus_used"])
        )
        for row in db.rows("history_use", {**page, **bounds})
    }


def _event(row: Mapping[str, Any], uses: Mapping[RunKey, RunUse]) -> HistoryEvent:
    key = RunKey(row["event_cluster"], row["event_job_id"], row["event_run_start"])
    job = None if row["job_id"] is None else job_record(row)
    use = uses.get(key) if row["kind"] in {"ended", "ledger"} else None
    return HistoryEvent(row["seq"], row["kind"], key, row["at_utc"], job, use, row["script"])
