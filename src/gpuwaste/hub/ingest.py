"""POST /v1/hours: from a body to committed rows and a signed acknowledgement."""

import logging
import threading
from dataclasses import dataclass

from gpuwaste.core.errors import AuthError, ParseError, StoreError
from gpuwaste.core.hour import AllocationHour
from gpuwaste.hub.identity import Identity
from gpuwaste.hub.metrics import HubMetrics
from gpuwaste.hub.refusal import BAD, FORBIDDEN, LATER, UPGRADE, Refusal
from gpuwaste.hub.site import Site, UnknownSiteError
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.wire.batch import PROTOCOL_MAX, PROTOCOL_MIN, Ack, Envelope, parse_envelope, parse_rows
from gpuwaste.wire.identity import Caller
from gpuwaste.wire.signing import sign_ack

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer to a batch."""

    body: bytes
    headers: dict[str, str]


class Ingest:
    """Takes batches; threads may share it. Blocks on munge, Slurm and the disk: call it off the event loop."""

    def __init__(
        self,
        store: HubStore,
        identity: Identity,
        site: Site,
        metrics: HubMetrics,
        *,
        check_origin: bool = True,
    ) -> None:
        self._store = store
        self._identity = identity
        self._site = site
        self._metrics = metrics
        self._check_origin = check_origin
        self._said: set[str] = set()
        self._refused = 0  # batches since the store failed
        self._said_lock = threading.Lock()

    def take(self, authorization: str, target: str, body: bytes) -> Taken:
        """Return the signed acknowledgement, once the rows are committed. Raises Refusal, with nothing stored."""
        caller = self._identity.caller(authorization, "POST", target, body)
        try:
            envelope, batch_id = parse_envelope(body)
        except ParseError as error:
            raise Refusal(BAD, str(error)) from error
        _check_protocol(envelope)
        self._check_sender(caller, envelope)
        good, rejected = _sort_rows(body, envelope)
        changed = self._stored(good)
        self._note(envelope, len(good), changed, rejected)
        answer = Ack(batch_id, len(good), rejected).to_bytes()
        try:
            return Taken(answer, sign_ack(self._identity.checkers, caller, answer))
        except AuthError as error:
            raise Refusal(LATER, f"the rows are stored, but the acknowledgement cannot be signed: {error}") from error

    def _stored(self, rows: list[AllocationHour]) -> int:
        """Store the rows; a store that fails is said once, and once more when it works again."""
        try:
            changed = self._store.upsert_hours(rows)
        except StoreError as error:
            with self._said_lock:
                new, self._refused = not self._refused, self._refused + 1
            if new:
                _log.error("hours are not stored, agents keep them: %s", error)
            raise Refusal(LATER, "the hub's store cannot be written: see its log") from error
        if self._refused:
            with self._said_lock:
                refused, self._refused = self._refused, 0
            _log.info("hours are stored again after %d refused batches", refused)
        return changed

    def _check_sender(self, caller: Caller, envelope: Envelope) -> None:
        """Refuse a batch whose sender is not the agent of the node that it names."""
        node = envelope.node
        if not self._identity.is_agent(caller, node):
            who = f"uid {caller.uid}" if caller.via != "token" else f"the token of {caller.name}"
            raise Refusal(FORBIDDEN, f"{who} may not send hours of {node[:64]}")
        try:
            cluster = self._site.cluster()
            if envelope.cluster != cluster:
                raise Refusal(BAD, f"cluster {envelope.cluster[:64]!r} is not served here, {cluster!r} is")
            if caller.via != "munge" or not self._check_origin:
                return
            addresses = self._site.addresses(node)
        except UnknownSiteError as error:
            raise Refusal(LATER, str(error)) from error
        if not addresses:
            raise Refusal(FORBIDDEN, f"Slurm has no node {node[:64]!r}")
        if caller.origin not in addresses:
            raise Refusal(
                FORBIDDEN,
                f"the credential was made on {caller.origin}, but NodeAddr of {node} is {_list(addresses)}:"
                " see munged's --origin, or set check_origin",
            )

    def _note(self, envelope: Envelope, accepted: int, changed: int, rejected: dict[int, str]) -> None:
        self._metrics.batch(envelope.node, accepted, changed, len(rejected))
        for line, reason in rejected.items():
            with self._said_lock:
                new = len(self._said) < 1000 and f"{envelope.node} {reason}" not in self._said  # noqa: PLR2004 bound
                self._said.add(f"{envelope.node} {reason}") if new else None
            if new:
                _log.warning("a row of %s is rejected, line %d: %s", envelope.node, line, reason)


def _check_protocol(envelope: Envelope) -> None:
    if not PROTOCOL_MIN <= envelope.protocol <= PROTOCOL_MAX:
        older = "agent" if envelope.protocol < PROTOCOL_MIN else "hub"
        raise Refusal(
            UPGRADE,
            f"protocol {envelope.protocol} is outside {PROTOCOL_MIN}..{PROTOCOL_MAX}: update the {older}",
            protocol=[PROTOCOL_MIN, PROTOCOL_MAX],
        )


def _sort_rows(body: bytes, envelope: Envelope) -> tuple[list[AllocationHour], dict[int, str]]:
    """Return the good rows, and the reason by line for the others."""
    good: list[AllocationHour] = []
    rejected: dict[int, str] = {}
    for line, row in parse_rows(body):
        if isinstance(row, ParseError):
            rejected[line] = str(row)
        elif row.node != envelope.node:
            rejected[line] = f"node {row.node} is not the batch's {envelope.node}"
        elif row.run_key.cluster != envelope.cluster:
            rejected[line] = f"cluster {row.run_key.cluster} is not the batch's {envelope.cluster}"
        else:
            good.append(row)
    return good, rejected


def _list(addresses: frozenset[str]) -> str:
    return ", ".join(sorted(addresses))
