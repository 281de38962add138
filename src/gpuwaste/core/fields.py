"""The base of every document, and the types of their fields that carry a unit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from msgspec import Meta, Struct, to_builtins

Utc = Annotated[int, Meta(description="UTC seconds.")]
Seconds = Annotated[int, Meta(description="Seconds.")]
GpuSeconds = Annotated[float, Meta(description="GPU-seconds.")]
Bytes = Annotated[int, Meta(description="Bytes.")]
Ratio = Annotated[float, Meta(description="0 to 1.")]
MaybeUtc = Annotated[int | None, Meta(description="UTC seconds; null: not yet.")]
MaybeRatio = Annotated[float | None, Meta(description="0 to 1; null: not known.")]
MaybeBytes = Annotated[int | None, Meta(description="Bytes; null: not known.")]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Number = Annotated[int, Meta(ge=0, le=2**40)]
Recorded = Annotated[bool, Meta(description="Whether the figures are those of a recording.")]


class Interval(Struct, kw_only=True, frozen=True):
    """An instant that is not known: UTC seconds that 10, 50 and 90 of 100 such jobs reach."""

    p10: Utc
    p50: Utc
    p90: Utc

    def not_before(self, at: int) -> "Interval":
        """Return the interval, no bound earlier than `at`, UTC seconds."""
        return Interval(p10=max(self.p10, at), p50=max(self.p50, at), p90=max(self.p90, at))


Table = tuple[Sequence[str], Iterable[Mapping[str, Any]]]
"""Columns, and rows with their cells by column."""


class Document(Struct, frozen=True):
    """The answer of a program; a reader ignores fields that it does not know."""

    ROWS: ClassVar[str] = ""
    """The field whose rows are the document as a table, where the table has only these."""
    HIDDEN: ClassVar[tuple[str, ...]] = ()
    """Fields of the rows that are not columns."""

    def table(self, part: str = "") -> "Table":  # noqa: ARG002 used by documents with several tables
        """Return the document as a table; some have several, by their names."""
        (kind,) = get_args(get_type_hints(type(self))[self.ROWS])
        columns = [name for name in kind.__struct_encode_fields__ if name not in self.HIDDEN]
        return columns, map(to_builtins, getattr(self, self.ROWS))

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        found: dict[str, Any] = to_builtins(self)
        return found


class DatedDocument(Document, kw_only=True, frozen=True):
    """The first fields of the hub's answers about a time; `schema` counts changes that a reader must know."""

    document: str = ""
    schema: int = 1
    recorded: Recorded
    generated: Utc
