"""The output of `gpuwaste history`: the documents about the store's content and about an import, and the text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct

from gpuwaste.core.fields import Bytes, Document, MaybeUtc
from gpuwaste.core.text import harmless
from gpuwaste.core.typed import convert
from gpuwaste.core.units import format_size
from gpuwaste.jobs.importers.history_store import PAGE_VERSION, HistoryStore, unread_fields
from gpuwaste.jobs.importers.import_result import ImportResult
from gpuwaste.show.layout import Column, Look, wrapped
from gpuwaste.show.terminal_cells import uncut
from gpuwaste.slurm.formats.slurm_times import format_time

QUARANTINE_ROWS: Final = 20
_RAW_SHOWN: Final = 120


class HistorySource(Struct, kw_only=True, frozen=True):
    """One source with its imports and pages."""

    kind: Annotated[str, Meta(description="sacct, slurmrestd, swf or csv.")]
    key: str
    cluster: str
    imports: int
    cut_off: Annotated[int, Meta(description="Unfinished imports.")]
    end_rule: Annotated[str | None, Meta(description="How the ends of its runs are known; null: file cut off.")]
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
    reason: Annotated[str, Meta(description="Reason, with * in place of numbers and names.")]
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


def status_text(document: HistoryStatus, look: Look) -> str:
    """Return the document as readable text."""
    lines = look.title("Job history") if look.header else []
    lines += look.facts([("Store", uncut(document.store))])
    if document.sources:
        lines += [*look.heading("Sources"), *_sources(document, look)]
    lines += [*look.heading("Runs by month of submission (UTC)"), *_months(document.runs, look)]
    notes = [_open(row) for row in document.open]
    if document.unread:
        lines += [*look.heading("Columns that cannot be read"), *_unread_table(document.unread, look)]
    if document.pages_due:
        notes.append(
            f"{document.pages_due:,} raw pages have columns that an earlier version did not read: the hub reads them "
            "again in the background; gpuwaste history import --again reads them at once"
        )
    if document.quarantined:
        lines += look.heading("Rows that could not be read")
        lines += _quarantine(document.quarantine, look)
        notes.append(f"{_counted(document.quarantined, 'row')} could not be read")
    lines += [*look.heading("Notes"), *(line for note in notes for line in look.bullet(note))] if notes else []
    return "\n".join(lines) + "\n"


def _open(row: OpenRuns) -> str:
    late = f", {row.runaway:,} of them a day past their limit (runaway jobs?)" if row.runaway else ""
    return f"{row.cluster}: {_counted(row.open, 'run')} without an end{late}"


def _sources(document: HistoryStatus, look: Look) -> list[str]:
    """Return each source, never cut, with its figures below it."""
    lines = []
    for row in document.sources:
        parts = [
            f"{_counted(row.runs, 'run')} from {_counted(row.imports, 'import')}, {_counted(row.bad, 'bad row')}",
            _read_up_to(row, document.marks),
            f"ends from {row.end_rule}" if row.end_rule else "cut off: the end of the source was not reached",
            f"{_counted(row.pages, 'raw page')}, {format_size(row.size_b)}, stored as {format_size(row.packed_b)}",
        ]
        lines.append(f"  {uncut(row.key)}")
        lines += wrapped("; ".join(filter(None, parts)), look.prose, "    ", "    ")
    return lines


def _counted(count: int, one: str) -> str:
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def _read_up_to(row: HistorySource, marks: Mapping[str, int]) -> str:
    mark = marks.get(row.key)
    if mark is None:
        return ""
    place = format_time(mark) if "-live:" in row.key or row.kind == "slurmrestd" else f"byte {mark:,}"
    return f"read up to {place}"


def _months(runs: list[HistoryMonth], look: Look) -> list[str]:
    """Return a table of cluster and month by state."""
    if not runs:
        return ["  no runs"]
    totals: dict[tuple[str, str], dict[str, int]] = {}
    states: dict[str, int] = {}
    for row in runs:
        state = row.state or "unknown"
        totals.setdefault((row.cluster, row.month), {})[state] = row.runs
        states[state] = states.get(state, 0) + row.runs
    found = list(totals.values())
    columns = [
        Column("CLUSTER", [cluster for cluster, _ in totals], left=True),
        Column("MONTH", [month for _, month in totals], left=True),
        Column("RUNS", [f"{sum(counts.values()):,}" for counts in found], whole=True),
    ]
    by_count = sorted(states, key=lambda state: -states[state])  # where there is no room, the rarest are left out
    for rank, state in enumerate(by_count, 1):
        columns.append(Column(state, [f"{counts.get(state, 0):,}" for counts in found], rank=rank, whole=True))
    table = look.fitted(columns)
    hidden = [state for state in by_count if look.header and f" {state} " not in f"{table[0]} "]
    return [*table, *look.bullet(f"not shown: {', '.join(hidden)}")] if hidden else table


def _unread_table(rows: list[UnreadField], look: Look) -> list[str]:
    return look.fitted(
        [
            Column("COLUMN", [row.field for row in rows], left=True),
            Column("RUNS", [f"{row.runs:,}" for row in rows]),
            Column("SOURCE", [uncut(row.source) for row in rows], left=True, whole=True),
        ]
    )


def _quarantine(rows: list[AsideRows], look: Look) -> list[str]:
    if not rows:
        return []
    reasons = [harmless(f"{row.rows:,} of {row.source}: {row.reason}") for row in rows]
    firsts = ["" if row.first_line is None else f" (first: line {row.first_line:,})" for row in rows]
    return [line for reason, first in zip(reasons, firsts, strict=True) for line in look.bullet(f"{reason}{first}")]
