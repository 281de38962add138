"""BalanceKeeper: keeps the balance of the hub's clusters by hour, on a thread of its own.

Every turn it counts the last hours anew, since accounting tells late who waited and who started. Once a day it counts
days anew in which runs changed since. Older days, after a start or an import of history, are counted with pauses.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final, Self

from prometheus_client.core import Metric

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.balance.balance_metrics import BalanceCounter
from gpuwaste.ledger.balance.balance_store import StoredHours, store_balance, stored_hours
from gpuwaste.ledger.balance.window import LOOKAHEAD_S, parts_of
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.hub.hub_store import HubStore

EVERY_S: Final = 900.0
_REST: Final = 9.0  # pauses are so many times as long as the work between them
_MAX_DAYS: Final = 20 * 366
_FAILED: Final = log_event.warning(
    "balance-not-counted: cannot count the balance of cluster {cluster}: {error}",
    "The store or its disk has an error. The balance of the last hours is missing until it works again.",
)


class BalanceKeeper(Part):
    """Stores the balance of full hours. One thread calls `step`."""

    late = True

    def __init__(self, store: HubStore, clock: Clock, settings: LedgerSettings) -> None:
        self._store = store
        self._settings = settings
        self._counter = BalanceCounter()
        self._clock = clock
        self._passes: dict[str, tuple[int, int]] = {}  # by cluster: the last daily pass, and the last change it saw
        self.worker = Worker("balance", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(parts.get(HubStore), parts.get(HostPorts).clock, parts.get(Judging).standing)
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next hour on. Thread-safe."""
        self._settings = settings

    def metrics(self) -> Iterable[Metric]:
        """Yield the GPU-seconds of the machine by class."""
        return self._counter.metrics()

    def _turn(self) -> float:
        self.step()
        return EVERY_S

    def step(self) -> None:
        """Count what is due. Raises no error of the store."""
        cluster = ""
        try:
            with self._store.reader() as db:
                clusters = [str(row["cluster"]) for row in db.rows("job_clusters")]
            for cluster in clusters:
                for since, until in self._due(cluster):
                    began = time.monotonic()
                    self._count(cluster, since, until)
                    rest_s = (time.monotonic() - began) * _REST
                    if self.worker.stopping.is_set() or self._clock.wait(self.worker.stopping, rest_s):
                        return
            with self._store.reader() as db:
                self._counter.count(db, clusters, self._settings, self._clock.utc_s())
        except GpuwasteError as error:
            _FAILED.log(cluster=cluster, error=error)

    def _due(self, cluster: str) -> Iterator[tuple[int, int]]:
        """Yield the times to count, each at most a day and of full hours."""
        now = self._clock.utc_s()
        end = now - now % HOUR_S
        with self._store.reader() as db:
            known = stored_hours(db, cluster)
            first = db.rows("balance_first", {"cluster": cluster})[0]["first"]
        if first is None:
            return
        first = max(first - first % DAY_S, end - _MAX_DAYS * DAY_S)
        if known.since == known.until:
            self._passes[cluster] = now, self._store.touched.last(first, now)
            recent = max(first, end - end % DAY_S - DAY_S)
            yield from _days(recent, end)
            yield from reversed(list(_days(first, recent)))  # next to what is stored
            return
        since = min(known.until, max(first, end - LOOKAHEAD_S))
        yield from _days(since, end)
        yield from reversed(list(_days(first, known.since)))  # history that came later
        yield from _days(self._changed_since(cluster, known.since, now), since)

    def _changed_since(self, cluster: str, first: int, now: int) -> int:
        """Return the first day with a change since the last daily pass, or now."""
        last = self._store.touched.last(first, now)
        day, seen = self._passes.setdefault(cluster, (now, 0))  # after a start what is stored is believed for a day
        if now - day < DAY_S or last <= seen:
            return now
        self._passes[cluster] = now, last
        return next(
            (start for start in range(first, now, DAY_S) if self._store.touched.last(start, start + DAY_S) > seen), now
        )

    def _count(self, cluster: str, since: int, until: int) -> None:
        with self._store.reader() as db:
            parts = list(parts_of(db, cluster, (since, until), self._clock.utc_s()))
        for start, end, sums in parts:
            store_balance(self._store, cluster, StoredHours(start, end), sums)


def _days(since: int, until: int) -> Iterator[tuple[int, int]]:
    while since < until:
        end = min(until, since - since % DAY_S + DAY_S)
        yield since, end
        since = end
