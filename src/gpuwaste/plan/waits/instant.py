"""The queue at one instant as columns: the jobs that run and wait, and the one that is asked about."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class JobRows(NamedTuple):
    """n jobs. Instants in UTC seconds, -1 for a start that is not known; processors, GPUs, limit in seconds.

    `user`, `account`, `pool` (the partition) and `kind` (the type of GPU asked for) are numbers of texts.
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
        """Amounts [n, 2] as the forward simulation takes them: processors and GPUs."""
        return np.column_stack((self.procs, self.gpus))


class QueueInstant(NamedTuple):
    """What is known at `now` of the pool of one job that is submitted; all rows are of that pool.

    `capacity` [2] is the most processors and GPUs that the pool has been seen to hold at once. Those that wait come in
    the order of submission: history does not have priorities.
    """

    now: int
    capacity: Ints
    running: JobRows
    waiting: JobRows
    asked: JobRows


def no_rows() -> JobRows:
    """Return no job."""
    return JobRows(*(np.empty(0, np.int64) for _ in JobRows._fields))
