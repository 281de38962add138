"""EventReads: the stream, the catalogue and the outlets as readers ask for them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import msgspec

from gpuwaste.act.events.event_service import EventService
from gpuwaste.act.events.event_types import MAX_EVENTS, EventsAnswer, OutletRow, OutletsDocument, RefusedEvent
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, FORBIDDEN, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.events.catalogue import PREFIX, kinds_of
from gpuwaste.jobs.events.envelope import encoded, event_of
from gpuwaste.jobs.events.stored_event import StoredEvent
from gpuwaste.jobs.host_ports import HostPorts

_MAX_PATTERNS: Final = 20
_REFUSED: Final = 100
EventText = tuple[int, str, bytes]


class EventReads(Part):
    """Any thread may ask."""

    def __init__(self, parts: EventService, cluster_of: Callable[[], str], clock: Clock) -> None:
        self._parts = parts
        self._cluster_of = cluster_of
        self._clock = clock

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(EventService), parts.get(ClusterFacts).known, parts.get(HostPorts).clock)

    def page(self, scope: Scope, after: int, limit: int, kinds: str) -> bytes:
        """Return an EventsAnswer as JSON: what the caller may see; `kinds` are patterns separated by commas."""
        events, following = self.found(scope, after, limit, self.wanted(kinds))
        cluster = self._cluster_of()
        raw = [msgspec.Raw(encoded(event, cluster)) for event in events]
        return msgspec.json.encode(EventsAnswer(events=raw, next=following))

    def found(self, scope: Scope, after: int, limit: int, kinds: frozenset[str]) -> tuple[list[StoredEvent], int]:
        """Return events of some kinds after a place, as far as the caller may see them, and the last place."""
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
        """Return place, type and JSON of each event that `found` has, and the last place."""
        events, until = self.found(scope, after, limit, kinds)
        cluster = self._cluster_of()
        return [(event.seq, PREFIX + event.kind, encoded(event, cluster)) for event in events], until

    def since(self, place: int, limit: int) -> tuple[list[StoredEvent], int]:
        """Return the events after a place whoever may see them, and the last place."""
        page = self._parts.store.page(place, limit)
        return list(map(event_of, page.events)), page.until

    def last(self) -> int:
        """Return the newest place of the stream."""
        return self._parts.store.last(0)

    def outlets(self, scope: Scope) -> OutletsDocument:
        """Return how the outlets stand, to operators."""
        if not scope.everything:
            raise Refusal(FORBIDDEN, "outlets are for operators")
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
        return OutletsDocument(generated=self._clock.utc_us() // 1_000_000, outlets=rows, refused=refused)


def may_see(scope: Scope, event: StoredEvent) -> bool:
    """Say whether an event is of a run that the caller may see; events of nodes and models are for operators."""
    own = event.run is not None and bool(scope.user) and event.user == scope.user
    return scope.everything or own or (event.run is not None and (event.run.cluster, event.account) in scope.accounts)


def _refused(row: Mapping[str, Any]) -> RefusedEvent:
    values = {name: value for name, value in row.items() if name != "at_utc"}
    return RefusedEvent(**values, at=row["at_utc"])
