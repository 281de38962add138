"""The result of an import into the store, counted page by page."""

from dataclasses import dataclass, field
from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.jobs.importers.history_store import UNREAD, PageRow

_SHOWN_BAD: Final = 5


@dataclass(slots=True)
class BadLine:
    """A line that could not be read, entirely or in part."""

    source: str
    line: int
    reason: str


@dataclass(slots=True)
class UnreadValues(BadLine):
    """The runs in which a field is unknown because its value cannot be read: the first line, and their number."""

    runs: int = 0


@dataclass(slots=True)
class ImportResult:
    """One source and what one import read of it; HistorySource has the sums of all of its imports."""

    kind: str
    key: str
    cluster: str
    pages: int = 0
    size_b: Annotated[int, Meta(description="Bytes.")] = 0
    packed_b: Annotated[int, Meta(description="Bytes on disk.")] = 0
    runs: int = 0
    changed: Annotated[int, Meta(description="Runs that were new or changed.")] = 0
    bad: Annotated[int, Meta(description="Rows that could not be read.")] = 0
    first_bad: Annotated[list[BadLine], Meta(description="Some of them.")] = field(default_factory=list)
    unread: Annotated[dict[str, UnreadValues], Meta(description="By field.")] = field(default_factory=dict)
    notes: Annotated[dict[str, int], Meta(description="What the parser counted, by name.")] = field(
        default_factory=dict
    )
    end_rule: Annotated[str, Meta(description="How the ends of the runs are known.")] = ""
    seconds: Annotated[float, Meta(description="How long it took, seconds.")] = 0.0

    def add(self, page: PageRow, changed: int) -> None:
        """Count a page that was stored."""
        self.pages += 1
        self.size_b += page.size_b
        self.packed_b += page.packed_b
        self.runs += page.runs
        self.changed += changed
        self.bad += page.bad_count
        for row in page.bad[: _SHOWN_BAD - len(self.first_bad)]:
            self.first_bad.append(BadLine(page.place, row.line, row.reason))
        for name, count in page.notes.items():
            self.notes[name] = self.notes.get(name, 0) + count
        for name, first in page.unread.items():
            found = self.unread.setdefault(name, UnreadValues(page.place, first.line, first.reason))
            found.runs = self.notes[UNREAD + name]
