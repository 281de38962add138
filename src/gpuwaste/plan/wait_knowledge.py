"""Jobs as rows of numbers, and what is learnt about waits from started and ended jobs: run times, last waits, usage.

The same for a replayed log and for a hub. Usage is that which fair share charges to users and accounts, halved each
week like Slurm's (PriorityDecayHalfLife, 7 days by default); Slurm's priorities are not in a job history.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.plan.start_time.run_times import PastRuns

GROUPS: Final = ("user", "user and shape", "shape", "size and length", "size", "account", "partition")
_KEPT: Final[Mapping[str, int]] = {"size": 300, "partition": 300}  # starts kept for rolling quantiles
_LAST: Final = 50  # of every other group
_KEYS: Final = 200_000  # groups; the least recently used one is dropped
HALF_LIFE_S: Final = 7 * 86400.0
Ints = NDArray[np.int64]


class Started(NamedTuple):
    """A start: its instant in UTC seconds and the wait before it."""

    at: int
    wait_s: int


class JobRows(NamedTuple):
    """n jobs. Instants in UTC seconds, -1 for an unknown start; processors, GPUs, limit in seconds.

    `user`, `account`, `pool` (the partition) and `kind` (the requested type of GPU) are numbers of texts.
    """

    submit: Ints
    start: Ints
    procs: Ints
    gpus: Ints
    limit: Ints
    user: Ints
    account: Ints
    pool: Ints
    kind: Ints

    def at(self, rows: "Ints | NDArray[np.bool_] | slice") -> Self:
        """Return these rows."""
        return type(self)(*(column[rows] for column in self))

    @property
    def asks(self) -> Ints:
        """Amounts [n, 2] in the format of the forward simulation: processors and GPUs."""
        return np.column_stack((self.procs, self.gpus))


class LastWaits:
    """The last waits of each group; feed `add` in the order of the starts."""

    def __init__(self) -> None:
        self._of: dict[Hashable, deque[Started]] = {}

    def add(self, jobs: JobRows) -> None:
        """Take jobs that have started."""
        for row in range(len(jobs.start)):
            found = Started(int(jobs.start[row]), max(int(jobs.start[row] - jobs.submit[row]), 0))
            for name, key in zip(GROUPS, keys_of(jobs, row), strict=True):
                # Put back at the end: the first key is the least recently used one.
                waits = self._of.pop(key, None)
                waits = deque(maxlen=_KEPT.get(name, _LAST)) if waits is None else waits
                waits.append(found)
                self._of[key] = waits
        while len(self._of) > _KEYS:
            del self._of[next(iter(self._of))]

    def last(self, jobs: JobRows, row: int) -> dict[str, Sequence[Started]]:
        """Return the last starts of each group of a job, the newest last; empty for a group without any."""
        return {name: self._of.get(key, ()) for name, key in zip(GROUPS, keys_of(jobs, row), strict=True)}


def keys_of(jobs: JobRows, row: int) -> tuple[Hashable, ...]:
    """Return the key of each of GROUPS that a job is in."""
    procs, gpus, limit, user, account, pool, kind = (
        int(column[row])
        for column in (jobs.procs, jobs.gpus, jobs.limit, jobs.user, jobs.account, jobs.pool, jobs.kind)
    )
    size = (procs.bit_length(), gpus.bit_length(), kind)
    shape = (procs, gpus, kind, limit)
    return (
        (0, user, pool),
        (1, user, *shape, pool),
        (2, *shape, pool),
        (3, *size, limit.bit_length(), pool),
        (4, *size, pool),
        (5, account, pool),
        (6, pool),
    )


class Usage:
    """Decayed processor-seconds by key; feed `add` in the order of the ends."""

    def __init__(self) -> None:
        self._of: dict[Hashable, tuple[int, float]] = {}

    def add(self, key: Hashable, now: int, amount: float) -> None:
        """Add the usage of a job that ends now."""
        self._of[key] = (now, self.at(key, now) + amount)

    def at(self, key: Hashable, now: int) -> float:
        """Return the usage of a key, decayed until now."""
        then, amount = self._of.get(key, (now, 0.0))
        return float(amount * 0.5 ** (max(now - then, 0) / HALF_LIFE_S))


class QueueInstant(NamedTuple):
    """What is known at `now` of the pool of one submitted job; all rows are of that pool.

    `capacity` [2] is the most processors and GPUs that were observed in use in the pool at once. Waiting jobs are in
    the order of submission: history has no priorities.
    """

    now: int
    capacity: Ints
    running: JobRows
    waiting: JobRows
    asked: JobRows


def no_rows() -> JobRows:
    """Return no job."""
    return JobRows(*(np.empty(0, np.int64) for _ in JobRows._fields))


class Knowledge:
    """Feed `started` and `ended` in the order of time, with what happened before the instant of the query."""

    def __init__(self) -> None:
        self.waits = LastWaits()
        self.past = PastRuns()
        self.usage = Usage()

    def started(self, jobs: JobRows) -> None:
        """Take jobs that have started, in their order."""
        self.waits.add(jobs)

    def ended(self, jobs: JobRows, row: int, at: int) -> None:
        """Take a job that has ended after a start."""
        procs, gpus, limit, user, account, pool = (
            int(column[row]) for column in (jobs.procs, jobs.gpus, jobs.limit, jobs.user, jobs.account, jobs.pool)
        )
        run_s = max(at - int(jobs.start[row]), 0)
        self.past.observe(user, (procs, gpus, limit), run_s, limit)
        for key in (("user", user), ("account", account), ("pool", pool)):
            self.usage.add(key, at, float(procs * run_s))


def learnt_of(jobs: JobRows, ended: Ints) -> Knowledge:
    """Return what is learnt from started jobs, in any order; `ended` [n] is -1 for one that still runs."""
    known = Knowledge()
    done = np.flatnonzero(ended >= 0)
    at = np.concatenate((jobs.start, ended[done]))
    row = np.concatenate((np.arange(len(ended)), done))
    for event in np.argsort(at, kind="stable").tolist():
        job = int(row[event])
        if event < len(ended):
            known.started(jobs.at(slice(job, job + 1)))
        else:
            known.ended(jobs, job, int(at[event]))
    return known
