"""A trace: jobs as arrays in the order of submission, and the jobs of a history that are left out of it."""

import hashlib
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import NoDataError
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.history.job_table import JobTable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_NO_LIMIT_S: Final = 366 * DAY_S  # what is believed of a job that may run forever; bounds every sum of instants
_LONGEST_S: Final = 100 * 366 * DAY_S  # between submissions: bounds what is computed in steps of time


class Planned(NamedTuple):
    """The input of a scheduler, n jobs by submission: `believed` is the walltime that it plans with, at least 1 s.

    A job that outlasts it is planned with its limit then. Where `user` has rows, a scheduler believes the last two jobs
    of each user instead (believed_times.py). A tuple, so that compiled code accepts it directly.
    """

    submit: Ints
    run: Ints
    believed: Ints
    limit: Ints
    procs: Ints
    user: Ints


@dataclass(frozen=True, slots=True)
class Trace:
    """n jobs by (submit, order of the log); whole seconds and processors.

    `run_s` is what a job runs on its own, at most its limit: a job that exceeds it ends at the limit. `waited_s` is
    how long it waited by the log, -1 where the log has no waits. `user` numbers the users. `row` is the job's place in
    the table that the trace was made of.
    """

    submit: Ints
    run_s: Ints
    limit_s: Ints
    procs: Ints
    user: Ints
    waited_s: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def sha256(self) -> str:
        """Return the hash of what a simulation depends on."""
        digest = hashlib.sha256()
        for column in (self.submit, self.run_s, self.limit_s, self.procs, self.user):
            digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        return digest.hexdigest()

    def planned(self, believed: Ints | None) -> Planned:
        """Return the input of a scheduler that believes these walltimes [n], or users' last two jobs for None."""
        user = self.user if believed is None else self.user[:0]
        walltimes = self.limit_s if believed is None else believed
        return Planned(self.submit, self.run_s, walltimes, self.limit_s, self.procs, user)

    def first(self, count: int) -> "Trace":
        """Return only the first jobs."""
        return self.take(np.arange(min(count, len(self))))

    def take(self, rows: NDArray[np.intp]) -> "Trace":
        """Return some jobs, by ascending place."""
        columns = (self.submit, self.run_s, self.limit_s, self.procs, self.user, self.waited_s, self.row)
        return Trace(*(column[rows] for column in columns))


PROCESSORS: Final = "processors"
GPUS: Final = "gpus"
RESOURCES: Final = {PROCESSORS: "processor", GPUS: "GPU"}  # what a machine and its jobs count; the word for one


def sizes_of(table: JobTable, resource: str = PROCESSORS) -> Floats:
    """Return how much of the resource each row [n] holds, NaN where it is not known.

    Processors are those that a job held; where the log lacks them, those requested. GPUs are those requested.
    """
    if resource == GPUS:
        return table.gpus
    return np.where(table.alloc_cpus >= 1, table.alloc_cpus, np.nan_to_num(table.cpus, nan=0.0))


def _sizes(table: JobTable, resource: str, *, without_too: bool) -> Floats:
    found = sizes_of(table, resource)
    return np.maximum(np.nan_to_num(found, nan=0.0), 0.0) if without_too else found


def left_out_of(
    table: JobTable, processors: int | None = None, resource: str = PROCESSORS, *, without_too: bool = False
) -> dict[str, NDArray[np.intp]]:
    """Return the rows of the jobs that trace_of() leaves out, by the first reason of each."""
    ran, cpus = table.run_s, _sizes(table, resource, without_too=without_too)
    reasons = {
        "never ended": np.isnan(ran),
        "ran for a negative time": ran < 0,
        f"requests no {RESOURCES[resource]}": ~(cpus >= (0 if without_too else 1)),
        "has a limit of zero": table.limit_s <= 0,
        "is larger than the machine": cpus > (np.inf if processors is None else processors),
        "is submitted over 100 years after the first": table.submit - table.submit.min(initial=2**62) > _LONGEST_S,
    }
    left, found = np.ones(len(table), dtype=np.bool_), {}
    for reason, places in reasons.items():
        found[reason] = np.flatnonzero(left & places)
        left &= ~places
    return found


def trace_of(
    table: JobTable, processors: int | None = None, resource: str = PROCESSORS, *, without_too: bool = False
) -> tuple[Trace, dict[str, int]]:
    """Return the jobs that a simulation can run, and how many were left out for which reason.

    `procs` of the trace count the resource. A job without a limit is believed to take as long as it ran. `processors`:
    those of the machine, None for a machine that is as large as the trace needs. `without_too` keeps jobs that hold
    none of the resource, with a size of 0: for a machine on whose nodes they take other resources. Raises NoDataError
    where no job is left.
    """
    cpus = _sizes(table, resource, without_too=without_too)
    left, ran = np.ones(len(table), dtype=np.bool_), table.run_s
    counts = {}
    for reason, places in left_out_of(table, processors, resource, without_too=without_too).items():
        counts[reason] = len(places)
        left[places] = False
    rows = np.flatnonzero(left)
    if not len(rows):
        told = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
        raise NoDataError(f"no job of the trace can be simulated: of {len(table)}, {told}")
    run = np.minimum(ran[rows], _NO_LIMIT_S).astype(np.int64)
    limit = np.where(np.isnan(table.limit_s[rows]), np.maximum(run, 1), table.limit_s[rows])
    limit = np.clip(limit, 1, _NO_LIMIT_S).astype(np.int64)
    known = (table.start[rows] >= table.submit[rows]) & table.wait_known
    trace = Trace(
        submit=table.submit[rows],
        run_s=np.minimum(run, limit),
        limit_s=limit,
        procs=np.ceil(cpus[rows]).astype(np.int64),
        user=table.user.codes[rows].astype(np.int64),
        waited_s=np.where(known, table.start[rows] - table.submit[rows], -1),
        row=rows.astype(np.int64),
    )
    return trace, {reason: count for reason, count in counts.items() if count}
