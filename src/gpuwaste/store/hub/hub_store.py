"""HubStore: what the hub keeps, behind named queries only.

One writer at a time, whatever the thread; readers take a cursor of their own. A method that writes has committed, and
the commit is on disk, when it returns.
"""

import contextlib
import math
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.scope import ClusterAccount
from gpuwaste.core.underuse import UNDER_USE, UnderUse
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.details import STAGES, take_details, take_steps
from gpuwaste.jobs.job_columns import FAR_S
from gpuwaste.jobs.job_event import HistoryEvent, RunUse
from gpuwaste.jobs.named_runs import pick_named
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.database import MEMORY, Database
from gpuwaste.store.hub.changed_ends import ChangedEnds
from gpuwaste.store.hub.json_rows import (
    HOUR_COLUMNS,
    HOUR_KEY,
    JOB_COLUMNS,
    STEP_COLUMNS,
    job_record,
    job_row,
    step_rows,
    to_json,
)
from gpuwaste.store.hub.touched import Touched

_LOG_B: Final = 16 << 20  # DuckDB's own limit
_OTHER_COLUMNS: Final = "".join(
    f", {name} = s.{name}" for name in HOUR_COLUMNS.types if name not in (*HOUR_KEY, "final")
)
_CAME_AGAIN: Final = log_event.info("old-hours-ignored: {rows} hours of days that are summed up came again, ignored")
STORE_NAME: Final = "hub.duckdb"  # below [hub] state_dir
ROLLED_MARK: Final = "rolled_until"  # UTC seconds: no day from then on was added up


@dataclass(frozen=True, slots=True)
class Aside:
    """A row that could not be read: where it stood, why, and the beginning of its text."""

    line: int
    reason: str
    raw: str


Run = tuple[str, int, int]
"""A run's key."""


@dataclass(slots=True)
class Changes:
    """What changed while somebody computed: runs by their keys, and all that ended at `from_end` or later."""

    runs: set[Run] = field(default_factory=set)
    from_end: float = math.inf

    def touches(self, run: Run, end: int) -> bool:
        """Tell whether what was computed of a run is of the past."""
        return run in self.runs or end >= self.from_end


class HubStore:
    """The hub's jobs, hours, events and marks."""

    packs: ClassVar[bool] = True
    """Whether rows are put in the order of users (packing.py)."""
    not_copied: ClassVar[str] = ""
    """Why `copy_to` makes no copy of this kind of store, and what to do instead."""
    upkeep_s: ClassVar[float] = 3600.0
    """How often old hours are summed up and `checkpoint` is called."""
    has_inbox: ClassVar[bool] = False
    """Whether hubs that stand by may leave batches for the one that writes (inbox.py)."""
    alone: ClassVar[bool] = True
    """Whether every change is made through this object, and so noted in `touched` and `changed_ends`."""

    def __init__(self, database: Database, clock: Clock, path: Path | None = None) -> None:
        self.under_use = UNDER_USE  # the rule by which the use of GPUs is counted whenever it is asked for
        self._root = database
        self._writer = database.cursor()
        self._upsert = database.text("hours_upsert").replace("-- the other columns", _OTHER_COLUMNS)
        self._clock = clock
        self._path = path
        self._write_lock = threading.Lock()
        self._cursor_lock = threading.Lock()
        self._copying: Database | None = None
        self._changes: Changes | None = None
        self.touched = Touched()
        self.changed_ends = ChangedEnds()
        for query in STAGES:
            self._writer.run(query)
        self._rolled_until = self.mark(ROLLED_MARK) or 0

    @classmethod
    def open(cls, path: Path | Literal[":memory:"], clock: Clock, memory_mb: int = 0) -> Self:
        """Open or create the store; `memory_mb` bounds DuckDB's memory, 0 leaves its own bound.

        Raises StoreError as `Database.open` does.
        """
        if path == MEMORY:
            return cls(Database.open(MEMORY, "hub"), clock)
        path = Path(path)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path.parent}: cannot be made: {error.strerror}") from error
        # Two threads take a quarter off a year's report, and ingest is no slower (bench.report, bench.ingest).
        options = {"threads": "2"} | ({"memory_limit": f"{memory_mb}MB"} if memory_mb else {})
        return cls(Database.open(path, "hub", options), clock, path)

    @property
    def given_up(self) -> str:
        """Why DuckDB refuses the store until it is opened again (Database.given_up); empty where it does not."""
        return self._root.given_up

    def close(self) -> None:
        """Close the file, once no write is under way."""
        with self._write_lock:
            self._writer.close()
            self._root.close()

    @contextmanager
    def reader(self) -> Iterator[Database]:
        """Lend a cursor to the calling thread."""
        with self._cursor_lock:
            cursor = self._root.cursor()
        with contextlib.closing(cursor):
            yield cursor

    def upsert_hours(self, hours: Sequence[AllocationHour]) -> int:
        """Take rows: the highest seq of a key wins, whatever the order in which they come. Returns how many changed.

        A run some of whose hours became final gets a `ledger` event. An hour that was added up by day stays as it is.
        """
        if not hours:
            return 0
        rows = to_json(map(HOUR_COLUMNS.row, _one_per_key(hours)))
        with self.writing() as db:
            return self._put_hours(db, hours, rows)

    def put_hours(self, db: Database, hours: Sequence[AllocationHour]) -> int:
        """Take rows as `upsert_hours` does, in a transaction of `writing`."""
        return self._put_hours(db, hours, to_json(map(HOUR_COLUMNS.row, _one_per_key(hours)))) if hours else 0

    def _put_hours(self, db: Database, hours: Sequence[AllocationHour], rows: str) -> int:
        bounds = {"lo": min(h.hour_utc for h in hours), "hi": max(h.hour_utc for h in hours)}
        if bounds["lo"] < self._rolled_until:
            rows = _without_rolled(db, hours, bounds)
        changed = db.execute(self._upsert, {**bounds, "rows": rows, "shape": HOUR_COLUMNS.shape}).fetchall()
        runs = {row[:3] for row in changed}
        self._note_changes(runs)
        self._judge_again(db, "judged_forget_hours", {"lo": bounds["lo"], "runs": _keys(runs)})
        if shared := runs & {h.key[:3] for h in hours if h.share < 1}:  # what holds no GPU was passed over
            self._judge_again(db, "ends_of", {"lo": bounds["lo"], "runs": _keys(shared)})
        self._add_events(db, "ledger", sorted({RunKey(*row[:3]) for row in changed if row[3]}))
        return len(changed)

    def upsert_jobs(self, jobs: Sequence[JobRecord]) -> int:
        """Take runs from accounting by their keys, with their events (jobs/job_event.py); returns how many changed."""
        if not jobs:
            return 0
        rows = {job.run_key: job_row(job) for job in jobs}
        with self.writing() as db:
            db.run("jobs_stage_clear")
            db.run("jobs_stage", {"rows": to_json(rows.values()), "shape": JOB_COLUMNS.shape})
            for query in ("jobs_known", "jobs_stage_keep", "jobs_changed", "jobs_detailed"):
                db.run(query)
            changed = take_changed(db, "jobs_delete_old")
            times = changed.removed
            if changed.runs:
                times += db.answer("jobs_changed_times").rows
                self._note_changes(((r.cluster, r.job_id, r.start) for r in rows), changed.first_end)
            steps = {"rows": to_json(step_rows(jobs)), "shape": STEP_COLUMNS.shape}
            take_steps(db, "steps_stage", steps)
            detailed = take_details(db)
        self.touched.note([*times, *detailed])
        return changed.runs + len(detailed)

    def open_runs(self, cluster: str) -> dict[RunKey, int]:
        """Return the runs that accounting has not ended, with their submit times."""
        with self.reader() as db:
            rows = db.rows("jobs_open", {"cluster": cluster})
        return {RunKey(cluster, row["job_id"], row["run_start"]): row["submit"] for row in rows}

    def runs_of(self, cluster: str, job_id: int) -> list[JobRecord]:
        """Return the runs of a job id, the newest first."""
        with self.reader() as db:
            return [job_record(row) for row in db.rows("jobs_of_id", {"cluster": cluster, "job_id": job_id})]

    def runs_named(
        self, printed_id: str, *, accounts: Collection[ClusterAccount] | None = None, reader: str | None = None
    ) -> list[JobRecord]:
        """Return every run of the job, array or het job that a printed or raw id (7, 3_1, 4+1) names.

        `accounts` keeps to runs of these accounts and, where `reader` is given, to that user's own.
        """
        with self.reader() as db:
            return pick_named(db, printed_id, accounts=accounts, reader=reader)

    def history(self, after: int, limit: int) -> list[HistoryEvent]:
        """Return up to `limit` events of runs whose seq is greater than `after`, in order."""
        page = {"after": after, "limit": limit}
        with self.reader() as db:
            rows = db.rows("history", page)
            uses = _uses(db, rows, page, self.under_use)
        return [_event(row, uses) for row in rows]

    def quarantine(self, source: str, rows: Sequence[Aside]) -> int:
        """Keep bad rows aside; returns how many were not there yet."""
        if not rows:
            return 0
        with self.writing() as db:
            return self.put_aside(db, source, rows)

    def put_aside(self, db: Database, source: str, rows: Sequence[Aside]) -> int:
        """Keep bad rows aside as `quarantine` does, in a transaction of `writing`."""
        now = self._clock.utc_us() // 1_000_000
        entries = [
            {"source": source, "line": row.line, "reason": row.reason, "raw": row.raw, "at_utc": now} for row in rows
        ]
        return len(db.run("quarantine_add", {"rows": to_json(entries)}).fetchall())

    def set_partitions(self, cluster: str, whole_node: Mapping[str, bool]) -> None:
        """Replace a cluster's partitions: name -> whether jobs there hold whole nodes."""
        rows = [{"cluster": cluster, "name": name, "whole_node": whole} for name, whole in sorted(whole_node.items())]
        with self.writing() as db:
            if {row["name"] for row in db.rows("partitions_whole", {"cluster": cluster})} != {
                name for name, whole in whole_node.items() if whole
            }:
                self._note_changes((), 0)
            self._judge_again(db, "judged_forget_partitions", {"cluster": cluster, "rows": to_json(rows)})
            db.run("partitions_clear", {"cluster": cluster})
            if rows:
                db.run("partitions_add", {"rows": to_json(rows)})

    def whole_node_partitions(self, cluster: str) -> frozenset[str]:
        """Return the partitions of a cluster in which a job holds its nodes alone."""
        with self.reader() as db:
            return frozenset(str(row["name"]) for row in db.rows("partitions_whole", {"cluster": cluster}))

    def mark(self, key: str) -> int | None:
        """Return where an importer stands."""
        with self.reader() as db:
            rows = db.rows("mark", {"key": key})
        return int(rows[0]["value"]) if rows else None

    def set_mark(self, key: str, value: int) -> None:
        """Note where an importer stands."""
        with self.writing() as db:
            db.run("mark_set", {"key": key, "value": value}).fetchall()

    def counts(self) -> dict[str, int]:
        """Return the rows of each table, and `last_event`."""
        with self.reader() as db:
            return {name: int(value) for name, value in db.rows("counts")[0].items()}

    def copy_to(self, path: Path) -> tuple[dict[str, int], int]:
        """Write the store as of this instant to a new file, while others write; returns its counts and its schema.

        Raises StoreError, also where `stop_copy` broke it off.
        """
        with self.reader() as db:
            own = str(db.execute("SELECT current_database()").fetchall()[0][0])
            quoted = str(path).replace("'", "''")
            db.execute(f"ATTACH '{quoted}' AS copy_of_the_hub")
            try:
                self._copying = db
                db.execute(f'COPY FROM DATABASE "{own}" TO copy_of_the_hub')
                db.execute("CHECKPOINT copy_of_the_hub")
                db.execute("USE copy_of_the_hub")
                rows = {name: int(value) for name, value in db.rows("counts")[0].items()}
                return rows, db.version
            finally:
                self._copying = None
                db.execute(f'USE "{own}"')
                db.execute("DETACH copy_of_the_hub")

    def stop_copy(self) -> None:
        """Break off `copy_to`, where one is under way."""
        db = self._copying
        if db is not None:
            db.interrupt()

    def size_b(self) -> int:
        """Return the bytes of the store's files."""
        if self._path is None:
            return 0
        files = (self._path, self._path.with_name(self._path.name + ".wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """Lend the writer; what was written is committed, and on disk, when the block ends."""
        with self._write_lock, self._writer.writing():
            yield self._writer

    @contextmanager
    def exchanging(self, db: Database) -> Iterator[None]:
        """Let another cursor write: the block is its transaction, on disk when it ends, and nobody else writes."""
        with self._write_lock, db.writing():
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from writing while the block ends a transaction that began before: their changes refuse it."""
        with self._write_lock:
            yield

    @contextmanager
    def watching(self) -> Iterator[Changes]:
        """Collect what changes of runs during the block, for the one who writes what they computed without the lock."""
        with self._write_lock:
            self._changes = changes = Changes()
        try:
            yield changes
        finally:
            self._changes = None

    def checkpoint(self) -> None:
        """Bring the file up to date where its log has grown; left for later where a reader is in the way.

        DuckDB 1.5.5 does that by itself after commits, but not during a roll-up.
        """
        if self._path is None or self._log_b() < _LOG_B:
            return
        with self._write_lock, contextlib.suppress(StoreError), self.reader() as db:
            db.execute("CHECKPOINT")

    def _log_b(self) -> int:
        log = self._path.with_name(self._path.name + ".wal") if self._path else None
        return log.stat().st_size if log is not None and log.exists() else 0

    def note_rolled(self, until: int) -> None:
        """Note that days before a UTC second may be added up from now on: hours from before are looked for among them.

        It is no part of the exchange: a mark that is ahead of the days costs a look-up, nothing else.
        """
        if until > self._rolled_until:
            with self.writing() as db:
                db.run("mark_set", {"key": ROLLED_MARK, "value": until}).fetchall()
                self._rolled_until = until

    def _note_changes(self, runs: Iterable[Run], from_end: int | None = None) -> None:
        """Note what the transaction that holds the lock changes, for those who watch."""
        if from_end is not None:
            self.changed_ends.note(from_end)
        if self._changes is not None:
            self._changes.runs.update(runs)
            if from_end is not None:
                self._changes.from_end = min(self._changes.from_end, from_end)

    def _judge_again(self, db: Database, ends_of: str, parameters: Mapping[str, Any]) -> None:
        """Have the runs whose ends a query returns judged again where they are not; it may forget what was judged.

        Somebody who watches may have passed them: what was computed from the first of them on is of the past.
        """
        ends = db.run(ends_of, parameters).fetchall()
        if ends:
            first = min(end for (end,) in ends)
            db.run("judged_back", {"end": first})
            db.run("summed_days_back", {"end": first})
            self._note_changes((), first)

    def _add_events(self, db: Database, kind: str, runs: Sequence[RunKey]) -> None:
        now = self._clock.utc_us() // 1_000_000
        rows: list[dict[str, Any]] = [
            {"kind": kind, "cluster": r.cluster, "job_id": r.job_id, "run_start": r.start, "at_utc": now} for r in runs
        ]
        if rows:
            db.run("events_add", {"rows": to_json(rows)})


@dataclass(frozen=True, slots=True)
class TakenRuns:
    """How many runs changed, when the first of them ended (UTC seconds, None where none has), and what was removed."""

    runs: int
    first_end: int | None
    removed: list[tuple[Any, ...]]


def take_changed(db: Database, delete: str) -> TakenRuns:
    """Write the runs of the scratch table of changed ones, with their events.

    The query `delete` removes what they replace; what it returns is `removed`.
    """
    ((changed, first_end),) = db.answer("jobs_changed_count").rows
    if not changed:
        return TakenRuns(0, first_end, [])
    db.run("jobs_events")
    if db.rows("jobs_other_user"):
        db.run("days_reassign")
    forgotten = db.run("judged_forget_jobs").fetchall()
    if forgotten:
        db.run("summed_days_back", {"end": min(end for (end,) in forgotten)})
    db.run("judged_back_jobs")
    removed = db.answer(delete).rows
    db.run("jobs_insert")
    return TakenRuns(changed, first_end, removed)


def _keys(runs: Iterable[Run]) -> str:
    return to_json(dict(zip(HOUR_KEY[:3], run, strict=True)) for run in sorted(runs))


def _one_per_key(hours: Sequence[AllocationHour]) -> Iterable[AllocationHour]:
    """Return the winner of each key; it is final if any of the key's rows is."""
    best: dict[tuple[str, int, int, str, str, int], AllocationHour] = {}
    for hour in hours:
        key = hour.key
        other = best.get(key)
        if other is None:
            best[key] = hour
        else:
            winner = hour if hour.seq > other.seq else other
            best[key] = replace(winner, final=hour.final or other.final)
    return best.values()


def _without_rolled(db: Database, hours: Sequence[AllocationHour], bounds: Mapping[str, Any]) -> str:
    """Return the rows of `_one_per_key` whose hours were not added up by day, as JSON."""
    rows = [{"no": no, **HOUR_COLUMNS.row(hour)} for no, hour in enumerate(_one_per_key(hours))]
    keys = to_json({name: row[name] for name in ("no", *HOUR_KEY)} for row in rows)
    known = {r["no"] for r in db.rows("rollup_known", {**bounds, "rows": keys})}
    if known:
        _CAME_AGAIN.log(rows=len(known))
    return to_json({k: v for k, v in row.items() if k != "no"} for row in rows if row["no"] not in known)


def _uses(
    db: Database, rows: Sequence[Mapping[str, Any]], page: Mapping[str, int], under_use: UnderUse
) -> dict[RunKey, RunUse]:
    """Return what the ledger says of the runs that ended among the events `rows` of a page."""
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
