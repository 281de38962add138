"""Hours as they travel from an agent to the hub: one line of JSON for each."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.hour import AllocationHour, hour_from_line
from gpuwaste.net.batch import Batch, json_line, parse_rows

RowKey = tuple[str, int, int, str, str, int]


@dataclass(frozen=True, slots=True)
class HourLine:
    """One hour of a batch: its identity, its version and its line of JSON (no newline)."""

    key: RowKey
    seq: int
    final: bool
    line: bytes

    def __str__(self) -> str:
        """Name the row in a log."""
        return f"{self.key} seq {self.seq}"


HourBatch = Batch[HourLine]


def encode_hour(hour: AllocationHour) -> HourLine:
    """Return the row as it travels. Raises ParseError where it holds what the wire form cannot (NaN)."""
    try:
        return HourLine(hour.key, hour.seq, hour.final, json_line(hour.to_wire()))
    except ValueError as error:
        raise ParseError(f"hours row of {hour.run_key}: {error}") from error


def parse_hours(body: bytes) -> Iterator[tuple[int, AllocationHour | ParseError]]:
    """Yield each row of a body with its line number, or what is wrong with it."""
    return parse_rows(body, hour_from_line)
