"""InletReader: takes the events of one inlet out of a log of others, from its own durable place, each at least once.

The places are stored with the events in one transaction, and an event that comes again is known by its id.
"""

from typing import Final

from gpuwaste.act.events.inlet import Fetched, FetchedInlet, InletDownError
from gpuwaste.act.events.intake import Intake
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.worker import Worker, backoff_s

_FIRST_S: Final = 1.0
_MOST_S: Final = 300.0
_DOWN: Final = log_event.warning(
    "inlet-down: inlet {name} gets no events, the next try is in {wait:.0f} s: {error}",
    "Nothing is lost as long as the broker keeps the events: the inlet continues where it was. Look at the broker.",
)
_UP: Final = log_event.info("inlet-up: inlet {name} gets events again")
_NOTED: Final = log_event.warning(
    "inlet-log-changed: inlet {name}: {note}",
    "The broker has lost its log, or the topic was created anew. Events that were only there are lost; repeated "
    "events are recognized by their id for three days.",
)


class InletReader:
    """`worker` runs it."""

    def __init__(self, intake: Intake, inlet: FetchedInlet, clock: Clock) -> None:
        self._intake = intake
        self._inlet = inlet
        self._last: Fetched | None = None  # what is in the store with its places
        self.worker = Worker(f"inlet {intake.file.name}", self.step, clock, last=inlet.close)

    def step(self) -> float:
        """Fetch and take the next events; returns the seconds until the next step."""
        state = self._intake.state
        try:
            if wait_s := self._intake.wait_s(1):
                return wait_s
            self._take_next()
        except (InletDownError, StoreError) as error:
            return self._failed(error)
        if state.failures:
            _UP.log(name=self._intake.file.name)
            state.failures, state.error = 0, ""
        return 0.0

    def _take_next(self) -> None:
        name = self._intake.file.name
        known = self._intake.store.places(name) if self._last is None else self._last.places
        found = self._inlet.fetch(known)
        for note in found.notes:
            _NOTED.log(name=name, note=note)
        if found.places != known:
            self._intake.take(found.texts, found.places)
            self._intake.overdraw(len(found.texts))
        self._last = found

    def _failed(self, error: Exception) -> float:
        state = self._intake.state
        self._inlet.close()  # what was fetched and not taken is fetched again
        state.failures += 1
        wait_s = backoff_s(state.failures, _FIRST_S, _MOST_S)
        if state.error != str(error):
            _DOWN.log(name=self._intake.file.name, wait=wait_s, error=error)
        state.error = str(error)
        return wait_s
