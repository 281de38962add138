"""InletParts: the hub's side of inlets: requests that are sent, threads that fetch, figures and what is set aside."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from prometheus_client.metrics_core import Metric

from gpuwaste.act.events.inlet import SentInlet
from gpuwaste.act.events.inlet_files import load_inlets
from gpuwaste.act.events.inlet_metrics import families
from gpuwaste.act.events.inlet_reader import InletReader
from gpuwaste.act.events.inlet_store import InletStore, SentRequest
from gpuwaste.act.events.inlet_types import InletAnswer, InletRow, InletsDocument, QuarantinedEvent
from gpuwaste.act.events.intake import RESULTS, Intake, IntakeResult
from gpuwaste.act.events.signing import UnsignedError
from gpuwaste.act.events.site_events import texts_of
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, CONFLICT, FORBIDDEN, TOO_MANY, UNAUTHORIZED, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.store.hub.hub_store import HubStore

MAX_BODY: Final = 1 << 20
_SHOWN: Final = 100
_REASONS: Final = 10
_LEFT_OUT: Final = log_event.error(
    "inlet-left-out: inlet disabled: {error}",
    "Correct the file (`gpuwaste events check`) and restart the hub. Senders get an error and try again.",
)
_FORGED: Final = log_event.warning(
    "inlet-refused: refused a request to inlet {name}: {error}",
    "A sender has no secret, a wrong one, or a wrong clock. Nothing was stored.",
)


class InletParts(Part):
    """`workers` fetch; `take` is for requests, from any thread."""

    def __init__(self, store: HubStore, clock: Clock, cluster: Callable[[], str], inlets: Path) -> None:
        """Read the inlets; one with an error is left out and logged: the hub has more to do than to take events."""
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
        """Take a request's events. Raises Refusal, StoreError: then nothing was taken and the sender tries again."""
        found = self._sent.get(name)
        if found is None:
            self._unknown += 1
            raise _unsigned()
        intake = self._intakes[name]
        try:
            request = found.check(headers, body, self._clock.utc_us() // 1_000_000)
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
        """Return how the inlets stand, to operators. Raises Refusal, StoreError."""
        if not scope.everything:
            raise Refusal(FORBIDDEN, "inlets are for operators")
        kept = self._store.aside_counts()
        rows = [_row(intake, kept.get(name, 0)) for name, intake in self._intakes.items()]
        aside = [_quarantined(row) for row in self._store.aside(_SHOWN)]
        return InletsDocument(generated=self._clock.utc_us() // 1_000_000, inlets=rows, quarantine=aside)

    def metrics(self) -> Iterator[Metric]:
        """Yield the families."""
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
                raise Refusal(CONFLICT, "this request was taken before: sign another attempt with its own time")
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
