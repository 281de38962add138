"""What every POST of rows has in common: from the body to committed rows and a signed acknowledgement."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import AuthError, ParseError, StoreError
from gpuwaste.core.refusal import BAD, LATER, UPGRADE, Refusal
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.inbox_room import InboxRoom
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.net.batch import PROTOCOL_MAX, PROTOCOL_MIN, Ack, Envelope, parse_envelope
from gpuwaste.net.request_signing import Caller, SignedAnswer, sender_of, sign_ack
from gpuwaste.store.database import Database
from gpuwaste.store.hub.inbox import Arrival

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
LocalUid = Callable[[], int | None]
"""Returns the uid at the other end of a connection, None where that is not on this host."""


def _unknown() -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class OpenedBatch(Generic[_Row]):
    """A batch of the inbox, validated by the hub that serves: its good rows, and the reason by line for the others."""

    arrival: Arrival
    envelope: Envelope
    rows: Sequence[_Row]
    rejected: Mapping[int, str]


class BatchReceiver(ABC, Generic[_Row]):
    """Receives batches of one kind of row; threads may share it. Blocks on munge, Slurm and the disk.

    On a hub that stands by, a batch goes into the inbox of the lake; the hub that serves opens and merges it.
    """

    path: ClassVar[str]
    what: ClassVar[str]  # the rows, in words
    sender: ClassVar[str]  # who sends them, in words

    def __init__(self, identity: Identity, site: ClusterFacts, clock: Clock, inbox: InboxRoom | None = None) -> None:
        """`inbox` is where a hub that stands by keeps batches."""
        self._identity = identity
        self._site = site
        self._clock = clock
        self._inbox = inbox
        self._said: set[str] = set()
        self._refused = RepeatSuppressor()  # batches since the store failed
        self._said_lock = threading.Lock()

    def take(self, authorization: str, target: str, body: bytes, local_uid: LocalUid = _unknown) -> SignedAnswer:
        """Return the signed acknowledgement, once the rows are committed. Raises Refusal, with nothing stored.

        `local_uid` returns the uid at the connection's other end, where that is on this host.
        """
        caller = self._identity.caller(authorization, "POST", target, body)
        try:
            envelope, batch_id = parse_envelope(body)
        except ParseError as error:
            raise Refusal(BAD, str(error)) from error
        self._check_protocol(envelope)
        self._check_sender(caller, envelope, local_uid)
        at_us = self._clock.utc_us()
        self._arrived(envelope, at_us)
        good, rejected = self._sort(body, envelope, at_us)
        _reject(good, rejected, self._admitted(envelope.node, good))
        inbox = self._inbox
        if inbox is None:
            _reject(good, rejected, self._judged(good))
            rows = list(good.values())
            self._stored(lambda: self._store_rows(rows, envelope, len(rejected)))
        else:
            left = Arrival(self.path, at_us, sender_of(caller), _without(body, rejected))
            if good:
                self._stored(lambda: inbox.put(left))
            self._count_rejected(len(rejected))
        self.say(envelope, rejected)
        answer = Ack(batch_id, len(good), rejected).to_bytes()
        try:
            return SignedAnswer(answer, sign_ack(self._identity.checkers, caller, answer))
        except AuthError as error:
            raise Refusal(LATER, f"the rows are stored, but the acknowledgement cannot be signed: {error}") from error

    def opened(self, arrivals: Sequence[Arrival]) -> list[OpenedBatch[_Row]]:
        """Validate batches of the inbox, in their order, as of their arrival. Raises ParseError."""
        found = [(one, parse_envelope(one.body)[0]) for one in arrivals]
        sorted_ = [self._sort(one.body, envelope, one.at_us) for one, envelope in found]
        places = [(no, line) for no, (good, _) in enumerate(sorted_) for line in good]
        judged = self._judged({number: sorted_[no][0][line] for number, (no, line) in enumerate(places)})
        for number, reason in judged.items():
            no, line = places[number]
            _reject(*sorted_[no], {line: reason})
        return [
            OpenedBatch(one, envelope, list(good.values()), rejected)
            for (one, envelope), (good, rejected) in zip(found, sorted_, strict=True)
        ]

    @abstractmethod
    def merge(self, db: Database, batches: Sequence[OpenedBatch[_Row]]) -> Callable[[], None]:
        """Write the rows of opened batches in the transaction of `db`; call the result after the commit: it counts."""

    @abstractmethod
    def _check_sender(self, caller: Caller, envelope: Envelope, local_uid: LocalUid) -> None:
        """Raise Refusal where the caller may not send this batch."""

    @abstractmethod
    def _sort(self, body: bytes, envelope: Envelope, at_us: int) -> tuple[dict[int, _Row], dict[int, str]]:
        """Return the good rows of a batch that arrived at `at_us` by line, and the reason by line for the others."""

    def _arrived(self, _envelope: Envelope, _at_us: int) -> None:
        """Note a batch of a proven sender that arrived at a time of this host's clock, UTC microseconds."""

    def _admitted(self, _node: str, _rows: Mapping[int, _Row]) -> dict[int, str]:
        """Return the reason by line for rows that any hub rejects on arrival. Raises Refusal."""
        return {}

    def _judged(self, _rows: Mapping[int, _Row]) -> dict[int, str]:
        """Return the reason by number for rows that only the hub that serves can reject."""
        return {}

    @abstractmethod
    def _store_rows(self, rows: Sequence[_Row], envelope: Envelope, rejected: int) -> None:
        """Commit the rows, and count them. Raises StoreError."""

    def _check_cluster(self, envelope: Envelope) -> None:
        cluster = self._site.cluster()
        if envelope.cluster != cluster:
            raise Refusal(BAD, f"cluster {envelope.cluster[:64]!r} is not served here: this hub serves {cluster!r}")

    @abstractmethod
    def _count_rejected(self, rejected: int) -> None:
        """Count rows that were rejected; the hub that serves counts the others of a batch that was left for it."""

    def _stored(self, store: Callable[[], None]) -> None:
        """Store the rows; a failing store is logged once, and once more when it works again."""
        try:
            store()
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

    def say(self, envelope: Envelope, rejected: Mapping[int, str]) -> None:
        """Log rows that were rejected, each reason of a node once."""
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


def _reject(good: dict[int, _Row], rejected: dict[int, str], reasons: Mapping[int, str]) -> None:
    """Move rows from the good ones to the others."""
    rejected |= reasons
    for line in reasons:
        good.pop(line, None)


def _without(body: bytes, lines: Mapping[int, str]) -> bytes:
    """Return a body with some of its lines empty, so that the others keep their numbers."""
    if not lines:
        return body
    return b"\n".join(b"" if number in lines else line for number, line in enumerate(body.split(b"\n"), start=1))
