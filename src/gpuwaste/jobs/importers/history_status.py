"""The output of `gpuwaste history`: the documents about the store's content and about an import, and the text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from tabulate import tabulate

from gpuwaste.core.fields import Bytes, Document, MaybeUtc
from gpuwaste.core.typed import convert
from gpuwaste.core.units import format_size
from gpuwaste.jobs.importers.history_store import PAGE_VERSION, HistoryStore, unread_fields
from gpuwaste.jobs.importers.import_result import ImportResult
from gpuwaste.slurm.formats.slurm_times import format_time

QUARANTINE_ROWS: Final = 20
_RAW_SHOWN: Final = 120


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
    """The runs of one cluster without an end."""

    cluster: str
    open: int
    runaway: Annotated[int, Meta(description="Of these, past their limit by more than a day.")]


class UnreadField(Struct, kw_only=True, frozen=True):
    """A field that is unknown because its value cannot be read."""

    source: str
    field: str
    runs: int


class AsideRows(Struct, kw_only=True, frozen=True):
    """Rows of one source that were quarantined for one reason."""

    source: str
    reason: Annotated[str, Meta(description="With * for its numbers and names.")]
    rows: int
    first_line: int | None
    example: str


class HistoryStatus(Document, kw_only=True, frozen=True):
    """The history in the store."""

    store: Annotated[str, Meta(description="The file.")]
    sources: list[HistorySource]
    marks: Annotated[Mapping[str, int], Meta(description="Where each importer continues: bytes, or UTC seconds.")]
    runs: list[HistoryMonth]
    open: list[OpenRuns]
    unread: list[UnreadField]
    pages_due: Annotated[int, Meta(description="Pages of which an earlier version read fewer columns.")]
    quarantine: Annotated[list[AsideRows], Meta(description="The most rows first.")]
    quarantined: Annotated[int, Meta(description="Rows that could not be read.")]


class ImportsDocument(Document, kw_only=True, frozen=True):
    """The output of `gpuwaste history import`."""

    store: str
    again: bool
    imports: list[ImportResult]


def status_document(store: HistoryStore, place: Path | str, now: int) -> HistoryStatus:
    """Return sources, marks, runs by cluster, month and state, runs without an end, and quarantined rows."""
    sources = store.ask("history_sources")
    quarantine = store.ask("history_quarantine", {"limit": QUARANTINE_ROWS})
    found = {
        "store": str(place),
        "sources": sources,
        "marks": {row["key"]: row["value"] for row in store.ask("marks_all")},
        "runs": store.ask("history_months"),
        "open": store.ask("history_open", {"now": now}),
        "unread": [field for row in sources for field in _unread(store, row["key"])],
        "pages_due": store.ask("pages_due_count", {"version": PAGE_VERSION})[0]["pages"],
        "quarantine": [{**row, "example": row["example"][:_RAW_SHOWN]} for row in quarantine],
        "quarantined": store.ask("counts")[0]["quarantine"],
    }
    return convert(found, HistoryStatus)


def _unread(store: HistoryStore, source: str) -> list[UnreadField]:
    """Return the fields of a source that are unknown because their values cannot be read, and the number of runs."""
    return [
        UnreadField(source=source, field=name, runs=runs)
        for name, runs in unread_fields(store.notes(source)[1]).items()
    ]


def status_text(document: HistoryStatus) -> str:
    """Return the document as readable text."""
    parts = [f"store {document.store}"]
    if document.sources:
        parts.append(_table(("source", "imports", "pages", "raw", "kept", "runs", "bad", "read up to", "ends"), [
            (
                row.key, row.imports, row.pages, format_size(row.size_b), format_size(row.packed_b),
                row.runs, row.bad, _stands(row, document.marks), row.end_rule or "cut off",
            )
            for row in document.sources
        ]))  # fmt: skip
    parts.append(_months(document.runs))
    parts += [
        f"{row.cluster}: {row.open} runs without an end"
        + (f", {row.runaway} of them a day past their limit (runaway jobs?)" if row.runaway else "")
        for row in document.open
    ]
    if document.unread:
        parts.append(_table(("source", "field", "runs in which the column cannot be read"), [
            (row.source, row.field, row.runs) for row in document.unread
        ]))  # fmt: skip
    if document.pages_due:
        parts.append(
            f"{document.pages_due} raw pages have columns that an earlier version did not read: the hub reads them "
            "again in the background, gpuwaste history import --again at once"
        )
    if document.quarantined:
        parts.append(f"{document.quarantined} rows could not be read")
        parts.append(_table(("rows", "source", "first line", "reason"), [
            (row.rows, row.source, row.first_line, row.reason) for row in document.quarantine
        ]))  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _stands(row: HistorySource, marks: Mapping[str, int]) -> str:
    mark = marks.get(row.key)
    if mark is None:
        return ""
    return format_time(mark) if "-live:" in row.key or row.kind == "slurmrestd" else f"byte {mark}"


def _months(runs: list[HistoryMonth]) -> str:
    """Return a table of cluster and month by state."""
    if not runs:
        return "no runs"
    states = sorted({row.state or "unknown" for row in runs})
    months: dict[tuple[str, str], dict[str, int]] = {}
    for row in runs:
        months.setdefault((row.cluster, row.month), {})[row.state or "unknown"] = row.runs
    rows = [
        (cluster, month, sum(counts.values()), *(counts.get(state, 0) for state in states))
        for (cluster, month), counts in months.items()
    ]
    return _table(("cluster", "month", "runs", *states), rows)


def _table(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    return tabulate(rows, header, disable_numparse=True)
