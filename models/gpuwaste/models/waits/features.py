"""What is known of a wait at submission, as numbers: the request, the queue, the waits of others before it."""

import math
from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.models.waits.queue_at import Submission, WaitLog
from gpuwaste.plan.when.correction import log_wait

Floats = NDArray[np.float64]
_NAN: Final = math.nan
KEPT: Final = 300  # waits of a group
_SHORT: Final = 50  # of these, what features look at


class Waits:
    """The last waits of each group, by the order of the starts: for features and for baselines."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._of: dict[Hashable, deque[tuple[float, float]]] = {}

    def add(self, key: Hashable, now: float, wait_s: float) -> None:
        """Take a start."""
        self._of.setdefault(key, deque(maxlen=self._kept)).append((now, wait_s))

    def last(self, key: Hashable) -> Sequence[tuple[float, float]]:
        """Return (instant of the start, wait) of the last starts, the newest at the end."""
        return self._of.get(key, ())


class Knowledge:
    """Features of each submission; `started` takes the starts between two of them."""

    def __init__(self, log: WaitLog) -> None:
        self.log = log
        self.waits = Waits()

    def groups(self, row: int) -> tuple[Hashable, ...]:
        """Return the groups whose waits a job's wait may be like."""
        log = self.log
        pool, procs, limit, user = (int(column[row]) for column in (log.pool, log.procs, log.limit, log.user))
        size, length = int(math.log2(procs)), int(math.log2(limit))
        return (
            ("user", user, pool),
            ("user and shape", user, procs, limit, pool),
            ("shape", procs, limit, pool),
            ("size and length", size, length, pool),
            ("size", size, pool),
            ("account", int(log.account[row]), pool),
            ("partition", pool),
        )

    def started(self, rows: Sequence[int]) -> None:
        """Take starts, in their order."""
        for row in rows:
            start = float(self.log.start[row])
            for key in self.groups(row):
                self.waits.add(key, start, start - float(self.log.submit[row]))

    def features(self, seen: Submission) -> list[float]:
        """Return the features of one submission, NaN for what is not known; the order is fixed."""
        log, row = self.log, seen.row
        now, pool, procs, limit = (int(c[row]) for c in (log.submit, log.pool, log.procs, log.limit))
        total = float(log.capacity[pool])
        hour, day = now / 3600 % 24, now / 86400 % 7
        running, waiting = (rows[log.pool[rows] == pool] for rows in (seen.running, seen.waiting))
        free = total - float(log.procs[running].sum())
        found = [math.log(procs), procs / total, math.log(limit), math.log(procs * limit), hour, day]
        found += [free / total, (free - procs) / total, float(len(running)), float(len(waiting)), float(pool)]
        found += self._ahead(waiting, row, total)
        left = np.maximum(log.limit[running] - (now - log.start[running]), 60)
        found += [math.log1p(float((left * log.procs[running]).sum()) / total)]
        mine = log.user[running] == log.user[row]
        found += [float(mine.sum()), float(log.procs[running][mine].sum()) / total]
        found += [float(log.procs[running][log.account[running] == log.account[row]].sum()) / total]
        for key in self.groups(row):
            found += _summary(self.waits.last(key), now)
        return found

    def _ahead(self, waiting: NDArray[np.int64], row: int, total: float) -> list[float]:
        """Return counts, work and ages of those that wait: all, no larger, the user's, the account's, of the shape."""
        log, now = self.log, int(self.log.submit[row])
        age, procs, limit = now - log.submit[waiting], log.procs[waiting], log.limit[waiting]
        work = procs * limit / total
        found = [math.log1p(float(work.sum()))]
        smaller = (procs <= log.procs[row]) & (limit <= log.limit[row])
        groups = (
            np.ones(len(waiting), np.bool_),
            smaller,
            log.user[waiting] == log.user[row],
            log.account[waiting] == log.account[row],
            (procs == log.procs[row]) & (limit == log.limit[row]),
            (log.user[waiting] == log.user[row]) & smaller,
        )
        for rows in groups:
            ages = age[rows]
            found += [float(len(ages)), float(procs[rows].sum()) / total]
            if len(ages):
                found += [log_wait(float(v)) for v in (ages.max(), np.median(ages), ages.min())]
            else:
                found += [_NAN] * 3
        return found


def _summary(waits: Sequence[tuple[float, float]], now: int) -> list[float]:
    """Return the last log waits, means over more of them, their spread, and how long ago the last start was."""
    if not waits:
        return [_NAN] * 8
    newest = list(islice(reversed(waits), _SHORT))
    logs = [log_wait(wait) for _, wait in newest]
    today = [value for value, (start, _) in zip(logs, newest, strict=True) if start > now - 86400]
    ordered = sorted(logs[:30])
    return [
        logs[0],
        fmean(logs[:3]),
        fmean(logs[:10]),
        ordered[len(ordered) // 10],
        ordered[len(ordered) * 9 // 10],
        ordered[-1],
        fmean(today) if today else _NAN,
        math.log1p(now - newest[0][0]),
    ]
