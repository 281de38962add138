"""The last waits of jobs that are alike: by user, shape, size, account, partition."""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from gpuwaste.plan.waits.instant import JobRows

GROUPS: Final = ("user", "user and shape", "shape", "size and length", "size", "account", "partition")
_KEPT: Final[Mapping[str, int]] = {"size": 300, "partition": 300}  # rolling quantiles are taken over these
_LAST: Final = 50  # of every other group
_KEYS: Final = 200_000  # groups; the one that was used longest ago goes


class Started(NamedTuple):
    """A start: its instant in UTC seconds and the wait before it."""

    at: int
    wait_s: int


class LastWaits:
    """The last waits of each group; feed `add` in the order of the starts."""

    def __init__(self) -> None:
        self._of: dict[Hashable, deque[Started]] = {}

    def add(self, jobs: JobRows) -> None:
        """Take jobs that have started."""
        for row in range(len(jobs.start)):
            found = Started(int(jobs.start[row]), max(int(jobs.start[row] - jobs.submit[row]), 0))
            for name, key in zip(GROUPS, keys_of(jobs, row), strict=True):
                # Put back at the end: the first key is the one that was used longest ago.
                waits = self._of.pop(key, None)
                waits = deque(maxlen=_KEPT.get(name, _LAST)) if waits is None else waits
                waits.append(found)
                self._of[key] = waits
        while len(self._of) > _KEYS:
            del self._of[next(iter(self._of))]

    def last(self, jobs: JobRows, row: int) -> dict[str, Sequence[Started]]:
        """Return the last starts of each group of a job, the newest at the end; empty for a group without any."""
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
