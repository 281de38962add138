"""Intake: takes one inlet's events into the stream, sets aside what is not valid, and counts."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.act.events.event_budget import EventBudget
from gpuwaste.act.events.inlet_files import InletFile
from gpuwaste.act.events.inlet_store import AsideEvent, InletStore, LogPlaces, SentRequest
from gpuwaste.act.events.site_events import SiteReader
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.jobs.events.stored_event import StoredEvent

_ASIDE = log_event.warning(
    "inlet-quarantined: inlet {name} cannot take {events} events, the first: {reason}",
    "`gpuwaste events quarantine` lists them. Compare the sender with the fields of the kind in the inlet's file.",
)


RESULTS: Final = ("accepted", "repeated", "quarantined")


@dataclass(slots=True)
class InletState:
    """Events by what became of them (RESULTS), requests that were refused by reason, and how fetching stands."""

    events: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """What became of a batch; `reasons` are those of the events that were set aside."""

    accepted: int
    repeated: int
    reasons: Sequence[str]


class Intake:
    """Any thread may call it."""

    def __init__(self, file: InletFile, store: InletStore, cluster: Callable[[], str], clock: Clock) -> None:
        self.file = file
        self.state = InletState()
        self.store = store
        self._reader = SiteReader(file.name, file.kinds)
        self._cluster = cluster
        self._clock = clock
        self._budget = EventBudget(file.per_minute, file.per_day, clock)
        self._lock = threading.Lock()
        self.turn = threading.Lock()
        """Held by whoever takes a request: of two that are the same only one is."""

    def wait_s(self, events: int) -> float:
        """Return the seconds until so many events may come, 0 for now."""
        with self._lock:
            return self._budget.wait_s(events)

    def spend(self, events: int) -> float:
        """Note events that come now; returns 0, or the seconds until they may, and then nothing is noted."""
        with self._lock:
            wait_s = self._budget.wait_s(events)
            if not wait_s:
                self._budget.spend(events)
            return wait_s

    def overdraw(self, events: int) -> None:
        """Note events that have come whatever may come."""
        with self._lock:
            self._budget.spend(events)

    def knows(self, request: SentRequest) -> bool:
        """Tell whether a request was taken. Raises StoreError."""
        return self.store.knows(self.file.name, request)

    def take(
        self, texts: Sequence[bytes], places: LogPlaces | None = None, request: SentRequest | None = None
    ) -> IntakeResult:
        """Take events, and note with them how far the log was read, or by which request they came.

        Raises StoreError: then nothing was taken.
        """
        now = self._clock.utc_us() // 1_000_000
        cluster = self._cluster()
        found = [self._reader.read(text, cluster, now) for text in texts]
        events = [one for one in found if isinstance(one, StoredEvent)]
        aside = [one for one in found if isinstance(one, AsideEvent)]
        new = self.store.take(self.file.name, events, aside, places, request)
        with self._lock:
            self.state.events.update(accepted=new, repeated=len(events) - new, quarantined=len(aside))
        if aside:
            _ASIDE.log(name=self.file.name, events=len(aside), reason=aside[0].reason)
        return IntakeResult(new, len(events) - new, [one.reason for one in aside])

    def refuse(self, reason: str) -> None:
        """Count a request that was refused."""
        with self._lock:
            self.state.refused[reason] += 1
