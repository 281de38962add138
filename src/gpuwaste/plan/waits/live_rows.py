"""A live cluster's jobs, and a store's rows, as the columns that the trees of waits have learnt from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from gpuwaste.core.job_states import HOLDING
from gpuwaste.plan.start_time.queue import NO_LIMIT_S
from gpuwaste.plan.waits.instant import Ints, JobRows, QueueInstant, no_rows
from gpuwaste.plan.waits.trees import WaitMachine
from gpuwaste.slurm.clients.scontrol import RunningJob
from gpuwaste.slurm.formats.run_texts import task_count
from gpuwaste.slurm.submit.request import JobRequest, request_from_tres, request_like

MAX_ROWS: Final = 50_000  # of a live queue, tasks of arrays one by one
MAX_TASKS: Final = 1000  # of one waiting array
_Row = tuple[int, int, int, int, int, int, int, int, int]


class LiveRows:
    """Numbers of users, accounts and GPU types, the same for all rows; partitions are numbered by the bundle."""

    def __init__(self, machine: WaitMachine) -> None:
        self.machine = machine
        self._pools = {pool.name: number for number, pool in enumerate(machine.pools)}
        self._numbers: dict[tuple[str, str], int] = {}

    def pool_of(self, partitions: str) -> int | None:
        """Return the first of the partitions named that the bundle has learnt from."""
        return next((self._pools[name] for name in partitions.split(",") if name in self._pools), None)

    def asked(self, requests: Sequence[JobRequest]) -> JobRows:
        """Return requests as rows of jobs that are submitted; `pool` is -1 where the bundle does not know it."""
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
        """Return the jobs that run, by their starts, and those that wait, by their submissions."""
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
        """Return what is known of one pool, of all jobs' rows."""
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
