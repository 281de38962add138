"""OutletSender: sends the stream to one outlet, from its own durable position, at least once, in order; its metrics.

Each outlet has a sender and a thread of its own: one that is down delays no other, and never the writers of the stream.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuwaste.act.events.outlet import Outlet, OutletDownError, OutletFile
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ConfigError, StoreError
from gpuwaste.core.worker import Worker, backoff_s
from gpuwaste.jobs.events.envelope import StoredEvent, event_of
from gpuwaste.jobs.events.event_store import Behind, EventStore, StreamPage
from gpuwaste.jobs.events.kinds.job import OF_RUN
from gpuwaste.jobs.job_event import HistoryEvent

PAGE: Final = 5000  # reading a page costs more the larger the store is, so a few large pages catch up
IDLE_S: Final = 0.25  # time between two reads of the stream: half of what an event may take to its receiver
_FIRST_S: Final = 1.0
_MOST_S: Final = 300.0
_DOWN: Final = log_event.warning(
    "outlet-down: outlet {name} accepts no events, retry in {wait:.0f} s: {error}",
    "Nothing is lost: the events wait in the hub's store and are sent in order. Check the receiver.",
)
_UP: Final = log_event.info("outlet-up: outlet {name} accepts events again, {events} wait")
_DEAD: Final = log_event.warning(
    "outlet-refused: outlet {name} rejects {events} events, not sent again, the first is {id}: {reason}",
    "`gpuwaste events status` lists what a receiver has rejected. Compare its rules with the schemas of the events.",
)


@dataclass(slots=True)
class SenderState:
    """The state of an outlet: the last event delivered, failures in a row and the last error, counts."""

    seq: int = 0
    failures: int = 0
    error: str = ""
    delivered: int = 0
    dead: int = 0


class OutletSender:
    """`worker` runs it; any thread may read `state`."""

    def __init__(self, file: OutletFile, events: EventStore, cluster: Callable[[], str], clock: Clock) -> None:
        self.file = file
        self.state = SenderState()
        self._events = events
        self._cluster = cluster
        self._outlet: Outlet | None = None
        self._begun = False
        self.worker = Worker(f"outlet {file.name}", self.step, clock, last=self._close)

    def step(self) -> float:
        """Deliver the next page; return the seconds until the next step."""
        try:
            self._begin()
            page = self._events.page(self.state.seq, PAGE)
            if page.until == self.state.seq:
                return IDLE_S
            self._deliver(page)
        except (OutletDownError, ConfigError, StoreError) as error:
            return self._failed(error)
        if self.state.failures:
            _UP.log(name=self.file.name, events=self._events.behind(self.state.seq).events)
            self.state.failures, self.state.error = 0, ""
        return 0.0

    def _begin(self) -> None:
        """Load the outlet's position; a new one begins as its file sets."""
        if self._begun:
            return
        place = self._events.place(self.file.name)
        if place is None:
            place = self._events.last(0) if self.file.begin == "now" else 0
            self._events.handed(self.file.name, place)
        self.state.seq = place
        self._begun = True

    def _deliver(self, page: StreamPage) -> None:
        """Deliver a page and store that. Raises OutletDownError, ConfigError, StoreError."""
        wanted: list[StoredEvent] = [event_of(stored) for stored in page.events if _kind(stored) in self.file.kinds]
        dead: list[tuple[StoredEvent, str]] = []
        if wanted:
            if self._outlet is None:
                self._outlet = self.file.make()
            dead = list(self._outlet.deliver(wanted, self._cluster()).dead)
        if dead:
            _DEAD.log(name=self.file.name, events=len(dead), id=dead[0][0].id, reason=dead[0][1])
        self._events.handed(self.file.name, page.until, [(event.seq, event.id, event.kind, why) for event, why in dead])
        self.state.seq = page.until
        self.state.delivered += len(wanted) - len(dead)
        self.state.dead += len(dead)

    def _failed(self, error: Exception) -> float:
        self.state.failures += 1
        most = backoff_s(self.state.failures, _FIRST_S, _MOST_S)
        wait_s = most * random.uniform(0.5, 1.0)  # noqa: S311 so that hubs and outlets do not come back together
        if self.state.error != str(error):
            _DOWN.log(name=self.file.name, wait=wait_s, error=error)
        self.state.error = str(error)
        return wait_s

    def _close(self) -> None:
        if self._outlet is not None:
            self._outlet.close()


def _kind(stored: StoredEvent | HistoryEvent) -> str:
    return stored.kind if isinstance(stored, StoredEvent) else OF_RUN[stored.kind]


@dataclass(frozen=True, slots=True)
class OutletStanding:
    """An outlet by its name: the state of its sender, and what is waiting for it."""

    name: str
    state: SenderState
    behind: Behind


def families(standings: Iterable[OutletStanding], now: float) -> Iterator[Metric]:
    """Yield the metrics; `now` is UTC seconds."""
    labels = ["outlet"]
    lag = GaugeMetricFamily("gpuwaste_hub_outlet_lag_events", "Events that wait for an outlet.", labels=labels)
    age = GaugeMetricFamily(
        "gpuwaste_hub_outlet_lag_seconds", "Time since the oldest event that waits for an outlet.", labels=labels
    )
    good = GaugeMetricFamily("gpuwaste_hub_outlet_up", "1 while an outlet accepts events.", labels=labels)
    given = CounterMetricFamily("gpuwaste_hub_outlet_events", "Events sent.", labels=labels)
    dead = CounterMetricFamily(
        "gpuwaste_hub_outlet_refused_events", "Events that a receiver will never accept.", labels=labels
    )
    for one in standings:
        first = one.behind.first_utc
        lag.add_metric([one.name], one.behind.events)
        age.add_metric([one.name], 0.0 if first is None else max(0.0, now - first))
        good.add_metric([one.name], float(one.state.failures == 0))
        given.add_metric([one.name], one.state.delivered)
        dead.add_metric([one.name], one.state.dead)
    yield from (lag, age, good, given, dead)
