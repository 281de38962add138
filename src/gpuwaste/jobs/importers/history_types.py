"""The types of what `gpuwaste history status` prints: what the store holds of history."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from gpuwaste.core.fields import Bytes, Document, MaybeUtc


class HistorySource(Struct, kw_only=True, frozen=True):
    """One source with its imports and pages."""

    kind: Annotated[str, Meta(description="sacct, slurmrestd, swf or csv.")]
    key: str
    cluster: str
    imports: int
    cut_off: Annotated[int, Meta(description="Imports that did not reach the end.")]
    end_rule: Annotated[str | None, Meta(description="How the ends of its runs are known; null: cut off.")]
    pages: int
    size_b: Bytes
    packed_b: Annotated[int, Meta(description="Bytes on disk.")]
    runs: int
    changed: Annotated[int, Meta(description="Runs that were new or changed.")]
    bad: Annotated[int, Meta(description="Rows that could not be read.")]
    at_utc: MaybeUtc


class HistoryMonth(Struct, kw_only=True, frozen=True):
    """The runs of one cluster, month and state."""

    cluster: str
    month: Annotated[str, Meta(description="Of the submission, UTC: YYYY-MM.")]
    state: str | None
    runs: int


class OpenRuns(Struct, kw_only=True, frozen=True):
    """The runs of one cluster that have no end."""

    cluster: str
    open: int
    runaway: Annotated[int, Meta(description="Of these, past their limit by more than a day.")]


class UnreadField(Struct, kw_only=True, frozen=True):
    """A field that is unknown where its value cannot be read."""

    source: str
    field: str
    runs: int


class AsideRows(Struct, kw_only=True, frozen=True):
    """Rows of one source that were kept aside for one reason."""

    source: str
    reason: Annotated[str, Meta(description="With * for its numbers and names.")]
    rows: int
    first_line: int | None
    example: str


class HistoryStatus(Document, kw_only=True, frozen=True):
    """What the store holds of history."""

    store: Annotated[str, Meta(description="The file.")]
    sources: list[HistorySource]
    marks: Annotated[Mapping[str, int], Meta(description="Where each importer continues: bytes, or UTC seconds.")]
    runs: list[HistoryMonth]
    open: list[OpenRuns]
    unread: list[UnreadField]
    pages_due: Annotated[int, Meta(description="Pages of which an earlier version read fewer columns.")]
    quarantine: Annotated[list[AsideRows], Meta(description="The most rows first.")]
    quarantined: Annotated[int, Meta(description="Rows kept aside.")]
