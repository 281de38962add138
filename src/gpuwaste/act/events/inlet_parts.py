"""InletParts: inlets in the hub: received requests, threads that fetch from logs, the quarantine and metrics.

A thread reads its log from a durable position, which is stored with the events in one transaction: each event is
fetched at least once, and a repeated one is recognized by its id.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuwaste.act.events.event_types import InletAnswer, InletRow, InletsDocument, QuarantinedEvent
from gpuwaste.act.events.inlet import Fetched, FetchedInlet, InletDownError, SentInlet, load_inlets
from gpuwaste.act.events.inlet_store import InletStore, SentRequest
from gpuwaste.act.events.intake import RESULTS, InletState, Intake, IntakeResult, texts_of
from gpuwaste.act.events.webhook_signing import UnsignedError
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, ParseError, StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, CONFLICT, FORBIDDEN, TOO_MANY, UNAUTHORIZED, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.worker import Worker, backoff_s
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.store.hub.hub_store import HubStore

MAX_BODY: Final = 1 << 20
_SHOWN: Final = 100
_REASONS: Final = 10
_LEFT_OUT: Final = log_event.error(
    "inlet-left-out: inlet disabled: {error}",
    "Correct the file (`gpuwaste events check`) and restart the hub. Senders get an error and retry.",
)
_FORGED: Final = log_event.warning(
    "inlet-refused: refused a request to inlet {name}: {error}",
    "A sender has no secret, a wrong one, or a wrong clock. Nothing was stored.",
)
_FIRST_S: Final = 1.0
_MOST_S: Final = 300.0
_DOWN: Final = log_event.warning(
    "inlet-down: inlet {name} gets no events, retry in {wait:.0f} s: {error}",
    "Nothing is lost as long as the broker keeps the events: the inlet continues where it was. Check the broker.",
)
_UP: Final = log_event.info("inlet-up: inlet {name} gets events again")
_NOTED: Final = log_event.warning(
    "inlet-log-changed: inlet {name}: {note}",
    "The broker has lost its log, or the topic was created again. Events that were only there are lost; repeated "
    "events are recognized by their id for three days.",
)


class InletParts(Part):
    """`workers` fetch; `take` is for requests, from any thread."""

    def __init__(self, store: HubStore, clock: Clock, cluster: Callable[[], str], inlets: Path) -> None:
        """Read the inlets; one with an error is left out and logged: the hub must run without it."""
        self._clock = clock
        self._store = InletStore(store, clock)
        self._unknown = 0
        self._intakes: dict[str, Intake] = {}
        self._sent: dict[str, SentInlet] = {}
        self._readers: list[InletReader] = []
        files, errors = load_inlets(inlets)
        for file in files:
            try:
                made = file.make()
            except ConfigError as error:
                errors.append(error)
                continue
            intake = self._intakes[file.name] = Intake(file, self._store, cluster, clock)
            if isinstance(made, SentInlet):
                self._sent[file.name] = made
            else:
                self._readers.append(InletReader(intake, made, clock))
        for wrong in errors:
            _LEFT_OUT.log(error=wrong)
        self.kinds = frozenset(name for intake in self._intakes.values() for name in intake.file.own)
        """The kinds that the site's inlets declare."""

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        inlets = Path(parts.get(Config).hub.inlets_dir)
        return cls(parts.get(HubStore), parts.get(HostPorts).clock, parts.get(ClusterFacts).known, inlets)

    @property
    def workers(self) -> list[Worker]:
        """The threads; none without an inlet that fetches."""
        return [reader.worker for reader in self._readers]

    def take(self, name: str, headers: Mapping[str, str], body: bytes) -> InletAnswer:
        """Take a request's events. Raises Refusal, StoreError: then nothing was stored and the sender retries."""
        found = self._sent.get(name)
        if found is None:
            self._unknown += 1
            raise _unsigned()
        intake = self._intakes[name]
        try:
            request = found.check(headers, body, self._clock.utc_s())
        except UnsignedError as error:
            if not intake.state.refused[error.reason]:
                _FORGED.log(name=name, error=error)
            intake.refuse(error.reason)
            raise _unsigned() from None
        return _answer(self._taken(intake, body, request))

    def refuse_size(self, name: str) -> None:
        """Count a request that was too large to be read."""
        if name in self._sent:
            self._intakes[name].refuse("size")

    def document(self, scope: Scope) -> InletsDocument:
        """Return the state of the inlets, for operators. Raises Refusal, StoreError."""
        if not scope.everything:
            raise Refusal(FORBIDDEN, "only operators may see inlets")
        kept = self._store.aside_counts()
        rows = [_row(intake, kept.get(name, 0)) for name, intake in self._intakes.items()]
        aside = [_quarantined(row) for row in self._store.aside(_SHOWN)]
        return InletsDocument(generated=self._clock.utc_s(), inlets=rows, quarantine=aside)

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics."""
        return families({name: intake.state for name, intake in self._intakes.items()}, self._unknown)

    @staticmethod
    def _taken(intake: Intake, body: bytes, request: SentRequest) -> IntakeResult:
        try:
            texts = list(texts_of(body))
        except ParseError as error:
            raise Refusal(BAD, str(error)) from error
        with intake.turn:
            if intake.knows(request):
                intake.refuse("replay")
                raise Refusal(CONFLICT, "this request was accepted before: sign another attempt with its own time")
            if wait_s := intake.spend(len(texts)):
                intake.refuse("rate")
                raise Refusal(TOO_MANY, "more events than [inlet] allows: send them later", retry_after=int(wait_s) + 1)
            return intake.take(texts, request=request)


def _unsigned() -> Refusal:
    """Return the answer for a wrong signature and for an inlet that does not exist: the same bytes for both."""
    return Refusal(UNAUTHORIZED, "no such inlet, or the request is not signed with its secret now")


def _answer(taken: IntakeResult) -> InletAnswer:
    return InletAnswer(
        accepted=taken.accepted,
        repeated=taken.repeated,
        quarantined=len(taken.reasons),
        reasons=list(taken.reasons[:_REASONS]),
    )


def _row(intake: Intake, kept: int) -> InletRow:
    state = intake.state
    return InletRow(
        name=intake.file.name,
        way=intake.file.way,
        kinds=sorted(intake.file.kinds),
        **{result: state.events[result] for result in RESULTS},
        kept=kept,
        refused=state.refused.total(),
        failures=state.failures,
        error=state.error,
    )


def _quarantined(row: Mapping[str, Any]) -> QuarantinedEvent:
    return QuarantinedEvent(
        inlet=row["inlet"], at=row["at_utc"], id=row["sent_id"], kind=row["kind"], reason=row["reason"], raw=row["raw"]
    )


class InletReader:
    """`worker` runs it."""

    def __init__(self, intake: Intake, inlet: FetchedInlet, clock: Clock) -> None:
        self._intake = intake
        self._inlet = inlet
        self._last: Fetched | None = None  # what is in the store with its positions
        self.worker = Worker(f"inlet {intake.file.name}", self.step, clock, last=inlet.close)

    def step(self) -> float:
        """Fetch and store the next events; return the seconds until the next step."""
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
        self._inlet.close()  # events that were fetched but not stored are fetched again
        state.failures += 1
        wait_s = backoff_s(state.failures, _FIRST_S, _MOST_S)
        if state.error != str(error):
            _DOWN.log(name=self._intake.file.name, wait=wait_s, error=error)
        state.error = str(error)
        return wait_s


def families(states: Mapping[str, InletState], unknown: int) -> Iterator[Metric]:
    """Yield the metrics of inlets by their names; `unknown` requests named no inlet."""
    up = GaugeMetricFamily("gpuwaste_hub_inlet_up", "1 while an inlet gets events.", labels=["inlet"])
    came = CounterMetricFamily(
        "gpuwaste_hub_inlet_events",
        "Events that came: accepted, repeated (known by their id) or quarantined.",
        labels=["inlet", "result"],
    )
    refused = CounterMetricFamily(
        "gpuwaste_hub_inlet_refused_requests",
        "Refused requests to inlets: unsigned, clock, signature, replay, size, rate, or unknown (no such inlet).",
        labels=["inlet", "reason"],
    )
    refused.add_metric(["", "unknown"], unknown)
    for name, state in states.items():
        up.add_metric([name], float(state.failures == 0))
        for result in RESULTS:
            came.add_metric([name, result], state.events[result])
        for reason, count in sorted(state.refused.items()):
            refused.add_metric([name, reason], count)
    yield from (up, came, refused)
