"""Waits expected by the site's own bundle of waits, where one is in use: for requests at the end of the queue.

The bundle is read again when its link moves, the history every RELEARNT_S; in between, starts are taken from the queue.
A live cluster's jobs and a store's rows become the columns from which the trees have learnt.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.core import log_event
from gpuwaste.core.bundle_registry import WAITS
from gpuwaste.core.errors import GpuwasteError, ModelError
from gpuwaste.core.job_states import HOLDING
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.plan.hub_queue_facts import MAX_PAST, PAST_S
from gpuwaste.plan.start_time.scheduler_queue import NO_LIMIT_S
from gpuwaste.plan.start_time.wait_correction import OpenWaits, WaitShifts
from gpuwaste.plan.wait_bundle import WaitMachine, WaitTrees, load_trees
from gpuwaste.plan.wait_features import simulated, vector, wait_features
from gpuwaste.plan.wait_knowledge import Ints, JobRows, Knowledge, QueueInstant, learnt_of, no_rows
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.printed_run import task_count
from gpuwaste.slurm.submit.job_request import JobRequest, request_from_tres, request_like
from gpuwaste.store.hub.hub_store import HubStore

RELEARNT_S: Final = 3600
_LOADED: Final = log_event.info("wait-model-loaded: model of waits loaded: {name} {hash}")
_NOT_LOADED: Final = log_event.warning(
    "wait-model-not-loaded: cannot load the model of waits, expected starts are simulated: {error}",
    "`gpuwaste model show --waits` names the problem. `gpuwaste model train --waits` makes a new model.",
)
Quantiles = tuple[float, float, float]
MAX_ROWS: Final = 50_000  # of a live queue, each array task counted
MAX_TASKS: Final = 1000  # of one waiting array
_Row = tuple[int, int, int, int, int, int, int, int, int]


class LearntWaits:
    """p10, p50 and p90 of waits in seconds; one thread at a time. Call `step` before each query."""

    def __init__(self, store: HubStore, models_dir: Path) -> None:
        self._store = store
        self._registry = Registry(models_dir / WAITS, wait_features())
        self._tried: tuple[Path, int] | None = None
        self._trees: WaitTrees | None = None
        self._rows: LiveRows
        self._trouble = RepeatSuppressor()
        self._known = Knowledge()
        self._learnt_at = 0
        self._seen_until = 0
        self._now = 0
        self._running = self._waiting = no_rows()
        self.open = OpenWaits(WaitShifts())

    @property
    def in_use(self) -> bool:
        """Whether a bundle is in use."""
        return self._trees is not None

    def step(self, jobs: Mapping[int, RunningJob], now: int) -> None:
        """Take the queue of `now`; reload the bundle and the history where due. Raises StoreError."""
        self._refresh()
        if self._trees is None or now == self._now:
            return
        if not 0 <= now - self._learnt_at < RELEARNT_S:
            self._learn(now)
        self._running, self._waiting = self._rows.queue({job.job_id: job for job in jobs.values()}.values(), now)
        fresh = (self._running.start > self._seen_until) & (self._running.start < now) & (self._running.pool >= 0)
        self._known.started(self._running.at(fresh))
        self._seen_until = max(self._seen_until, int(self._running.start[fresh].max(initial=0)))
        self._now = now

    def raw(self, requests: Sequence[JobRequest]) -> list[Quantiles | None]:
        """Return what the trees expect for requests submitted now, not corrected; None for an unknown partition.

        Raises ModelError.
        """
        found: list[Quantiles | None] = [None] * len(requests)
        if self._trees is None:
            return found
        asked = self._rows.asked(requests)
        for pool in sorted(set(asked.pool.tolist()) - {-1}):
            own = np.flatnonzero(asked.pool == pool).tolist()
            for row, said in zip(own, self._of_pool(self._trees, pool, asked), strict=True):
                found[row] = said
        return found

    def expected(self, requests: Sequence[JobRequest]) -> list[Quantiles | None]:
        """Return the expected waits, corrected by past errors."""
        try:
            raw = self.raw(requests)
        except ModelError as error:
            self._failed(str(error))
            return [None] * len(requests)
        return [None if said is None else _three(self.open.shifts.apply(said)) for said in raw]

    def _of_pool(self, trees: WaitTrees, pool: int, asked: JobRows) -> list[Quantiles]:
        at = self._rows.instant(self._now, pool, self._running, self._waiting, asked)
        hints = simulated(at, self._known.past, trees.machine.draws, 1)
        rows = [vector(at, row, self._known, hint) for row, hint in enumerate(hints)]
        return [_three(said) for said in trees.waits_s(np.array(rows, np.float32)).tolist()]

    def _refresh(self) -> None:
        try:
            found = self._registry.champion()
            tried = None if found is None else (found.resolve(), (found / "manifest.json").stat().st_mtime_ns)
            if tried == self._tried:
                return
            self._tried = tried
            trees = None if found is None else load_trees(found)
            shifts = WaitShifts()
            if trees is not None:
                shifts.unpack(trees.shifts)
        except (GpuwasteError, OSError, ValueError) as error:
            self._failed(str(error))
            return
        self._trees, self.open, self._learnt_at, self._now = trees, OpenWaits(shifts), 0, 0
        self._trouble.over()
        if trees is not None:
            self._rows = LiveRows(trees.machine)
            _LOADED.log(name=trees.bundle.manifest.name, hash=trees.bundle.hash[:12])

    def _learn(self, now: int) -> None:
        with self._store.reader() as db:
            rows = db.rows("runs_started_last", {"since": now - PAST_S, "most": MAX_PAST})
        jobs, ended = self._rows.started(rows)
        ended[ended >= now] = -1
        own = (jobs.pool >= 0) & (jobs.start < now)
        self._known, self._learnt_at = learnt_of(jobs.at(own), ended[own]), now
        self._seen_until = int(jobs.start[own].max(initial=0))

    def _failed(self, words: str) -> None:
        if self._trouble.news(words):
            _NOT_LOADED.log(error=words)


def _three(values: Sequence[float]) -> Quantiles:
    first, middle, last = values
    return (first, middle, last)


class LiveRows:
    """Numbers users, accounts and GPU types, the same for all rows; partitions are numbered by the bundle."""

    def __init__(self, machine: WaitMachine) -> None:
        self.machine = machine
        self._pools = {pool.name: number for number, pool in enumerate(machine.pools)}
        self._numbers: dict[tuple[str, str], int] = {}

    def pool_of(self, partitions: str) -> int | None:
        """Return the first of the named partitions that the bundle has learnt."""
        return next((self._pools[name] for name in partitions.split(",") if name in self._pools), None)

    def asked(self, requests: Sequence[JobRequest]) -> JobRows:
        """Return requests as rows of submitted jobs; `pool` is -1 where the bundle does not know it."""
        return _rows([self._row(request, request.submit, -1, None) for request in requests])

    def started(self, rows: Iterable[Mapping[str, Any]]) -> tuple[JobRows, Ints]:
        """Return rows of the query runs_started_last, and their ends (-1: not yet)."""
        found: list[_Row] = []
        ends: list[int] = []
        for row in rows:
            asked = request_from_tres(
                row["req_tres"],
                user=row["user"],
                submit=row["submit"],
                account=row["account"],
                partition=row["partition"],
                time_limit_s=row["time_limit_s"],
            )
            found.append(self._row(asked, row["submit"], row["start"], row["cpus"]))
            ends.append(-1 if row["end"] is None else max(row["end"], row["start"]))
        return _rows(found), np.array(ends, np.int64)

    def queue(self, jobs: Iterable[RunningJob], now: int) -> tuple[JobRows, JobRows]:
        """Return the running jobs, ordered by start, and the waiting ones, ordered by submission."""
        running: list[_Row] = []
        waiting: list[_Row] = []
        for job in jobs:
            submit = min(now if job.submit is None else job.submit, now)
            if job.state in HOLDING:
                start = now if job.start is None else min(job.start, now)
                held = request_from_tres(job.tres, user="", submit=0).cpus if job.tres else None
                running.append(self._row(request_like(job), submit, start, held))
            elif job.state == "PENDING" and len(waiting) < MAX_ROWS:
                tasks = min(task_count(job.printed_id), MAX_TASKS, MAX_ROWS - len(waiting))
                waiting += [self._row(request_like(job), submit, -1, None)] * tasks
        running.sort(key=lambda row: row[1])
        waiting.sort(key=lambda row: row[0])
        return _rows(running), _rows(waiting)

    def instant(self, now: int, pool: int, running: JobRows, waiting: JobRows, asked: JobRows) -> QueueInstant:
        """Return the known facts of one pool, from all jobs' rows."""
        size = self.machine.pools[pool]
        capacity = np.array((size.procs, size.gpus), np.int64)
        own = (rows.at(rows.pool == pool) for rows in (running, waiting, asked))
        return QueueInstant(now, capacity, *own)

    def _row(self, request: JobRequest, submit: int, start: int, held: int | None) -> _Row:
        pool = self.pool_of(request.partition)
        limit = request.time_limit_s or NO_LIMIT_S
        return (
            submit,
            start,
            max(held or request.cpus or 1, 1),
            request.gpus,
            min(limit, NO_LIMIT_S),
            self._number("user", request.user),
            self._number("account", request.account),
            -1 if pool is None else pool,
            self._number("kind", request.gpu_type),
        )

    def _number(self, what: str, text: str) -> int:
        return self._numbers.setdefault((what, text), len(self._numbers))


def _rows(found: Sequence[_Row]) -> JobRows:
    return JobRows(*np.array(found, np.int64).T.copy()) if found else no_rows()
