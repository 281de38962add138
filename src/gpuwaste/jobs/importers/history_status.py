"""Builds the documents of `gpuwaste history`: what the store holds, and what an import did."""

from pathlib import Path
from typing import Final

from gpuwaste.core.fields import Document
from gpuwaste.core.typed import convert
from gpuwaste.jobs.importers.history_store import PAGE_VERSION, HistoryStore, unread_fields
from gpuwaste.jobs.importers.history_types import HistoryStatus, UnreadField
from gpuwaste.jobs.importers.import_result import ImportResult

QUARANTINE_ROWS: Final = 20
_RAW_SHOWN: Final = 120


class ImportsDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste history import` prints."""

    store: str
    again: bool
    imports: list[ImportResult]


def status_document(store: HistoryStore, place: Path | str, now: int) -> HistoryStatus:
    """Return sources, marks, runs by cluster, month and state, runs without an end, and rows kept aside."""
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
    """Return the fields of a source that are unknown because their values cannot be read, and in how many runs."""
    return [
        UnreadField(source=source, field=name, runs=runs)
        for name, runs in unread_fields(store.notes(source)[1]).items()
    ]
