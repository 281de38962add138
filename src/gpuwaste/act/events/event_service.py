"""EventService and EventReads: events in the hub: sources, a sender for each outlet, and what readers get.

Sources check for new events once a minute. A reader gets the events of the runs that they may see; operators get all.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from prometheus_client.metrics_core import Metric

from gpuwaste.act.events.event_types import MAX_EVENTS, EventsAnswer, OutletRow, OutletsDocument, RefusedEvent
from gpuwaste.act.events.inlet_parts import InletParts
from gpuwaste.act.events.outlet import load_outlets
from gpuwaste.act.events.outlet_sender import OutletSender, OutletStanding, families
from gpuwaste.act.events.sources import EventSource, SourceSnapshot, SourceStores, sources
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, FORBIDDEN, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.typed import decode
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.events.envelope import StoredEvent, encoded, event_of
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.events.kind_catalogue import PREFIX, kinds_of
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.now.now_document import Now
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.net.health_types import PredictionHealth
from gpuwaste.sim.kept_simulations import DIRECTORY as SIMULATIONS
from gpuwaste.store.hub.hub_store import HubStore

EVERY_S: Final = 60.0  # agents report every 15 minutes, or every minute
_NOT_LOOKED: Final = log_event.warning(
    "events-not-told: cannot find new events: {error}",
    "The store or its disk cannot be written. These events are reported later.",
)
_LEFT_OUT: Final = log_event.error(
    "outlet-left-out: an outlet gets no events: {error}",
    "Correct the file (`gpuwaste events check`) and restart the hub. No event is lost: they wait in the hub's store.",
)
_MAX_PATTERNS: Final = 20
_REFUSED: Final = 100
_FIRED: Final = "rule.fired"
EventText = tuple[int, str, bytes]


@dataclass(frozen=True, slots=True)
class SourceViews:
    """The data of sources: the state of the cluster, the predictor, and how long a GPU is idle before it is reported.

    `since` returns what was received since an earlier look, at a UTC second.
    """

    now: Callable[[], Now]
    since: Callable[[int], Now]
    prediction: Callable[[], PredictionHealth]
    idle_min_s: Callable[[], float]


class EventService(Part):
    """`workers` run it: one checks the sources, one per outlet sends. Without outlets nothing runs."""

    def __init__(
        self,
        store: HubStore,
        clock: Clock,
        cluster: Callable[[], str],
        *,
        outlets: Path,
        site: Collection[str],
        views: SourceViews,
        simulations: Path | None = None,
    ) -> None:
        """Read the outlets; one with an error is left out and logged: the hub must run without it.

        `site` are the kinds that inlets declare, `simulations` the directory of saved simulations.
        """
        self.site = site
        self.store = EventStore(store, clock)
        self._views = views
        files, errors = load_outlets(outlets, site)
        for error in errors:
            _LEFT_OUT.log(error=error)
        self.senders = [OutletSender(file, self.store, cluster, clock) for file in files]
        self._clock = clock
        self._cluster = cluster
        self._held_utc = 0
        self._sources: list[EventSource] = sources(SourceStores(store, self.store, simulations))
        self._looker = Worker("event sources", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        hub = parts.get(Config).hub
        now, predictions, judging = parts.get(NowReads), parts.get(Predictions), parts.get(Judging)
        return cls(
            parts.get(HubStore),
            parts.get(HostPorts).clock,
            parts.get(ClusterFacts).known,
            outlets=Path(hub.outlets_dir),
            site=parts.get(InletParts).kinds,
            views=SourceViews(now.take, now.since, predictions.health, lambda: judging.standing.finding_min_s),
            simulations=Path(hub.state_dir) / SIMULATIONS,
        )

    @property
    def workers(self) -> list[Worker]:
        """The threads; none without outlets."""
        return [self._looker, *(sender.worker for sender in self.senders)] if self.senders else []

    def look(self) -> int:
        """Report new events; return how many. Raises StoreError."""
        cluster, views = self._cluster(), self._views
        if not cluster:
            return 0
        held = views.since(self._held_utc)
        self._held_utc = held.generated
        seen = SourceSnapshot(held.generated, cluster, held, views.prediction(), views.idle_min_s())
        told = 0
        for source in self._sources:
            told += self.store.tell(source.events(seen))
            source.told()
        return told

    def standings(self) -> list[OutletStanding]:
        """Return the state of each outlet. Raises StoreError."""
        return [OutletStanding(one.file.name, one.state, self.store.behind(one.state.seq)) for one in self.senders]

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics."""
        return families(self.standings(), self._clock.utc_us() / 1e6)

    def _turn(self) -> float:
        try:
            self.look()
        except StoreError as error:
            _NOT_LOOKED.log(error=error)
        return EVERY_S


class EventReads(Part):
    """Reads of the event stream, for any thread."""

    def __init__(self, parts: EventService, cluster_of: Callable[[], str], clock: Clock) -> None:
        self._parts = parts
        self._cluster_of = cluster_of
        self._clock = clock

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(EventService), parts.get(ClusterFacts).known, parts.get(HostPorts).clock)

    def page(self, scope: Scope, after: int, limit: int, kinds: str) -> bytes:
        """Return an EventsAnswer as JSON: what the caller may see; `kinds` are comma-separated patterns."""
        events, following = self.found(scope, after, limit, self.wanted(kinds))
        cluster = self._cluster_of()
        raw = [msgspec.Raw(encoded(event, cluster)) for event in events]
        return msgspec.json.encode(EventsAnswer(events=raw, next=following))

    def found(self, scope: Scope, after: int, limit: int, kinds: frozenset[str]) -> tuple[list[StoredEvent], int]:
        """Return the events of some kinds after a position that the caller may see, and the last position."""
        page = self._parts.store.page(after, min(limit, MAX_EVENTS))
        found = map(event_of, page.events)
        return [event for event in found if event.kind in kinds and may_see(scope, event)], page.until

    def wanted(self, kinds: str) -> frozenset[str]:
        """Return the kinds of a reader's patterns. Raises Refusal."""
        patterns = [pattern for pattern in kinds.split(",") if pattern]
        if len(patterns) > _MAX_PATTERNS:
            raise Refusal(BAD, f"kinds: {_MAX_PATTERNS} patterns at most")
        try:
            return kinds_of(patterns, "kinds", self._parts.site)
        except ConfigError as error:
            raise Refusal(BAD, str(error)) from error

    def texts(self, scope: Scope, after: int, limit: int, kinds: frozenset[str]) -> tuple[list[EventText], int]:
        """Return position, type and JSON of each event of `found`, and the last position."""
        events, until = self.found(scope, after, limit, kinds)
        cluster = self._cluster_of()
        return [(event.seq, PREFIX + event.kind, encoded(event, cluster)) for event in events], until

    def since(self, place: int, limit: int) -> tuple[list[StoredEvent], int]:
        """Return all events after a position, regardless of who may see them, and the last position."""
        page = self._parts.store.page(place, limit)
        return list(map(event_of, page.events)), page.until

    def last(self) -> int:
        """Return the newest position of the stream."""
        return self._parts.store.last(0)

    def outlets(self, scope: Scope) -> OutletsDocument:
        """Return the state of the outlets, for operators."""
        if not scope.everything:
            raise Refusal(FORBIDDEN, "only operators may see outlets")
        counts = self._parts.store.dead_counts()
        rows = [
            OutletRow(
                name=one.name,
                way=sender.file.way,
                kinds=sorted(sender.file.kinds),
                handed=one.state.seq,
                behind=one.behind.events,
                oldest=one.behind.first_utc,
                failures=one.state.failures,
                error=one.state.error,
                refused=counts.get(one.name, 0),
            )
            for sender, one in zip(self._parts.senders, self._parts.standings(), strict=True)
        ]
        refused = [_refused(row) for row in self._parts.store.dead(_REFUSED)]
        return OutletsDocument(generated=self._clock.utc_s(), outlets=rows, refused=refused)


def may_see(scope: Scope, event: StoredEvent) -> bool:
    """Return whether an event is of a run that the caller may see; events of nodes and models are for operators.

    So are steps of rules that a campaign holds back: their user learns nothing of them.
    """
    if scope.everything:
        return True
    own = event.run is not None and bool(scope.user) and event.user == scope.user
    theirs = event.run is not None and (event.run.cluster, event.account) in scope.accounts
    return (own or theirs) and not (event.kind == _FIRED and decode(event.data).get("campaign"))


def _refused(row: Mapping[str, Any]) -> RefusedEvent:
    values = {name: value for name, value in row.items() if name != "at_utc"}
    return RefusedEvent(**values, at=row["at_utc"])
