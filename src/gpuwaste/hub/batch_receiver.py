"""From a body of rows to committed rows and a signed acknowledgement: what every POST of rows has in common."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from gpuwaste.core import log_event
from gpuwaste.core.errors import AuthError, ParseError, StoreError
from gpuwaste.core.once import Once
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.cluster_facts import ClusterFacts
from gpuwaste.hub.refusal import BAD, LATER, UPGRADE, Refusal
from gpuwaste.wire.batch import PROTOCOL_MAX, PROTOCOL_MIN, Ack, Envelope, parse_envelope
from gpuwaste.wire.identity import Caller
from gpuwaste.wire.signing import sign_ack

_MAX_SAID: Final = 1000
_REFUSED: Final = log_event.error(
    "rows-not-stored: cannot store {what}, each {sender} keeps its own: {error}",
    "The disk of the hub is full, or its store is not writable: free space. Senders keep every row.",
)
_AGAIN: Final = log_event.info("rows-stored-again: {what} stored again after {failures} refused batches")
_REJECTED: Final = log_event.warning(
    "row-rejected: row of {node} rejected, line {line}: {reason}",
    "An impossible row; the sender keeps it in its outbox. Compare the versions of both, then report it.",
)
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class SignedAnswer:
    """The answer to a batch."""

    body: bytes
    headers: dict[str, str]


class BatchReceiver(ABC, Generic[_Row]):
    """Takes batches of one kind of row; threads may share it. Blocks on munge, Slurm and the disk."""

    path: ClassVar[str]
    what: ClassVar[str]  # the rows, in words
    sender: ClassVar[str]  # who sends them, in words

    def __init__(self, identity: Identity, site: ClusterFacts) -> None:
        self._identity = identity
        self._site = site
        self._said: set[str] = set()
        self._refused = Once()  # batches since the store failed
        self._said_lock = threading.Lock()

    def take(self, authorization: str, target: str, body: bytes) -> SignedAnswer:
        """Return the signed acknowledgement, once the rows are committed. Raises Refusal, with nothing stored."""
        caller = self._identity.caller(authorization, "POST", target, body)
        try:
            envelope, batch_id = parse_envelope(body)
        except ParseError as error:
            raise Refusal(BAD, str(error)) from error
        self._check_protocol(envelope)
        self._check_sender(caller, envelope)
        good, rejected = self._sort(body, envelope)
        self._stored(good, envelope, rejected)
        self._say(envelope, rejected)
        answer = Ack(batch_id, len(good), rejected).to_bytes()
        try:
            return SignedAnswer(answer, sign_ack(self._identity.checkers, caller, answer))
        except AuthError as error:
            raise Refusal(LATER, f"the rows are stored, but the acknowledgement cannot be signed: {error}") from error

    @abstractmethod
    def _check_sender(self, caller: Caller, envelope: Envelope) -> None:
        """Raise Refusal where the caller may not send this batch."""

    @abstractmethod
    def _sort(self, body: bytes, envelope: Envelope) -> tuple[list[_Row], dict[int, str]]:
        """Return the good rows, and the reason by line for the others."""

    @abstractmethod
    def _store_rows(self, rows: Sequence[_Row], envelope: Envelope, rejected: int) -> None:
        """Commit the rows, and count them. Raises StoreError."""

    def _check_cluster(self, envelope: Envelope) -> None:
        cluster = self._site.cluster()
        if envelope.cluster != cluster:
            raise Refusal(BAD, f"cluster {envelope.cluster[:64]!r} is not served here: this hub serves {cluster!r}")

    def _stored(self, rows: list[_Row], envelope: Envelope, rejected: dict[int, str]) -> None:
        """Store the rows; a store that fails is said once, and once more when it works again."""
        try:
            self._store_rows(rows, envelope, len(rejected))
        except StoreError as error:
            with self._said_lock:
                new = self._refused.news("")
            if new:
                _REFUSED.log(what=self.what, sender=self.sender, error=error)
            raise Refusal(LATER, "the hub's store cannot be written: see its log") from error
        if self._refused.times:
            with self._said_lock:
                refused = self._refused.over()
            _AGAIN.log(what=self.what, failures=refused)

    def _say(self, envelope: Envelope, rejected: dict[int, str]) -> None:
        for line, reason in rejected.items():
            with self._said_lock:
                new = len(self._said) < _MAX_SAID and f"{envelope.node} {reason}" not in self._said
                self._said.add(f"{envelope.node} {reason}") if new else None
            if new:
                _REJECTED.log(node=envelope.node, line=line, reason=reason)

    def _check_protocol(self, envelope: Envelope) -> None:
        if not PROTOCOL_MIN <= envelope.protocol <= PROTOCOL_MAX:
            older = self.sender if envelope.protocol < PROTOCOL_MIN else "hub"
            raise Refusal(
                UPGRADE,
                f"protocol {envelope.protocol} is outside {PROTOCOL_MIN}..{PROTOCOL_MAX}: update the {older}",
                protocol=[PROTOCOL_MIN, PROTOCOL_MAX],
            )


def sender_of(caller: Caller) -> str:
    """Return who a caller is, in words."""
    return f"uid {caller.uid}" if caller.via != "token" else f"the token of {caller.name}"
