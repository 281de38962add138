"""A batch as it is sent: NDJSON with an envelope line first, and its acknowledgement, for any type of row.

The module of a type writes and reads its lines: ledger/hour.py, advice/verdicts/verdict_batch.py. Line numbers of an
acknowledgement count from 1, the envelope; the first row is line 2.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Generic, Protocol, TypeVar
from uuid import uuid4

from gpuwaste.core.errors import ParseError

PROTOCOL: Final = 1
PROTOCOL_MIN: Final = 1
PROTOCOL_MAX: Final = PROTOCOL + 1  # one version ahead is accepted: its additions are ignored
MAX_BATCH_BYTES: Final = 1024 * 1024
FIRST_ROW_LINE: Final = 2
_MAX_NAME: Final = 256
_FAR_US: Final = 2**60


class BatchLine(Protocol):
    """A row as it is sent."""

    @property
    def line(self) -> bytes:
        """The row's JSON, no newline."""
        ...


L = TypeVar("L", bound=BatchLine)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Batch(Generic[L]):
    """Rows that are sent together, in their order; the acknowledgement names the batch by its id."""

    rows: tuple[L, ...]
    batch_id: str = field(default_factory=lambda: uuid4().hex)

    def part(self, rows: Sequence[L]) -> "Batch[L]":
        """Return a batch with some of these rows and a new id."""
        return Batch(tuple(rows))


@dataclass(frozen=True, slots=True)
class Envelope:
    """A batch's first line: the sender; for verdicts `node` is the advisor's host, agent_version the advisor's.

    `sent_us` is the sender's clock when the batch is sent, UTC microseconds; None where the sender is an older version.
    """

    cluster: str
    node: str
    boot_id: str
    agent_version: str
    protocol: int = PROTOCOL
    sent_us: int | None = None

    def line(self, batch_id: str) -> bytes:
        """Return the line, without its newline."""
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return json_line({"batch_id": batch_id, **fields})

    def sent_at(self, utc_us: int) -> "Envelope":
        """Return the envelope of a batch that is sent at this time of the sender's clock."""
        return replace(self, sent_us=utc_us)


@dataclass(frozen=True, slots=True)
class Ack:
    """The hub's signed acknowledgement of a batch, after its commit."""

    batch_id: str
    accepted: int
    rejected: dict[int, str] = field(default_factory=dict)  # reason by line number
    protocol: int = PROTOCOL

    def to_bytes(self) -> bytes:
        """Return the answer's body."""
        rejected = [{"line": line, "reason": reason} for line, reason in sorted(self.rejected.items())]
        return json_line(
            {"protocol": self.protocol, "batch_id": self.batch_id, "accepted": self.accepted, "rejected": rejected}
        )


def json_line(value: dict[str, Any]) -> bytes:
    """Return one line of compact JSON, without its newline."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def encode_batch(envelope: Envelope, batch: Batch[L]) -> bytes:
    """Return the body of a POST: the envelope and the rows."""
    return b"\n".join([envelope.line(batch.batch_id), *(row.line for row in batch.rows), b""])


def parse_envelope(body: bytes) -> tuple[Envelope, str]:
    """Return the envelope and the batch id of a body. Raises ParseError; the protocol's number is not checked here."""
    fields = json_object(body.partition(b"\n")[0], "the batch's first line")
    protocol = fields.get("protocol")
    if isinstance(protocol, bool) or not isinstance(protocol, int):
        raise ParseError("the batch's first line: protocol is not a whole number")
    names = {}
    for name in ("batch_id", "cluster", "node", "boot_id", "agent_version"):
        value = fields.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= _MAX_NAME:
            raise ParseError(f"the batch's first line: {name} is not a text of 1 to {_MAX_NAME} characters")
        names[name] = value
    batch_id = names.pop("batch_id")
    sent_us = fields.get("sent_us")
    if isinstance(sent_us, bool) or not isinstance(sent_us, int) or not 0 < sent_us < _FAR_US:
        sent_us = None
    return Envelope(protocol=protocol, sent_us=sent_us, **names), batch_id


def parse_rows(body: bytes, read: Callable[[bytes], _T]) -> Iterator[tuple[int, _T | ParseError]]:
    """Yield each row's line number with the row, or with what is wrong with it; blank lines are skipped.

    `read` makes a row of its line, or raises ParseError.
    """
    for number, line in enumerate(body.split(b"\n")[1:], start=FIRST_ROW_LINE):
        if not line.strip():
            continue
        try:
            yield number, read(line)
        except ParseError as error:
            yield number, error


def parse_ack(body: bytes, batch: Batch[L]) -> Ack:
    """Return the acknowledgement of `batch`. Raises ParseError where it is for another batch, or misses a row."""
    fields = json_object(body, "the acknowledgement")
    if fields.get("batch_id") != batch.batch_id:
        raise ParseError(f"the hub acknowledges batch {str(fields.get('batch_id'))[:40]!r}, not {batch.batch_id}")
    rejected: dict[int, str] = {}
    entries = fields.get("rejected")
    for entry in entries if isinstance(entries, list) else ():
        line = entry.get("line") if isinstance(entry, dict) else None
        if not isinstance(line, int) or not FIRST_ROW_LINE <= line < FIRST_ROW_LINE + len(batch.rows):
            raise ParseError(f"the acknowledgement rejects line {str(line)[:20]}, which was not sent")
        rejected[line] = str(entry.get("reason", ""))[:500]
    accepted = fields.get("accepted")
    if isinstance(accepted, bool) or accepted != len(batch.rows) - len(rejected):
        raise ParseError(f"the hub accepts {str(accepted)[:20]} and rejects {len(rejected)} of {len(batch.rows)} rows")
    return Ack(batch.batch_id, accepted, rejected)


def json_object(text: bytes, what: str) -> dict[str, Any]:
    """Return the JSON object of a line. Raises ParseError that begins with `what`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"{what}: invalid JSON") from error
    if not isinstance(value, dict):
        raise ParseError(f"{what}: not a JSON object")
    return value
