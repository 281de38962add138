"""A source of history: raw pages, a parser that needs only a page and its context, and the rows that it returns.

A file of `gpuwaste.jobs.importers.sources` has `parse` with the signature of `Parser`; the file's name is the kind that
is stored with its pages, by which they can be parsed again years later.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gpuwaste.core.errors import StoreError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.text import storable
from gpuwaste.jobs.importers import sources
from gpuwaste.jobs.importers.history_store import UNREAD, PagePlace, Resume
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import Aside

Notes = Counter[str]  # what a parser counts, by name
KEPT_BAD: Final = 2000  # bad rows of a piece that are kept aside; all are counted
EACH_ONCE: Final = frozenset({"csv"})  # kinds whose rows are a run each: a second row of a run is another run's
PAGE_B: Final = 8 * 1024**2  # about how much of a file makes a page


@dataclass(slots=True)
class SortedRows:
    """The rows of a piece of accounting whose first line is `first_line`; a later row of a run replaces an earlier one.

    A row of which a single field cannot be read is a run all the same; `unread` has the first such row of each field.
    """

    first_line: int = 1
    records: dict[RunKey, JobRecord] = field(default_factory=dict)
    bad: list[Aside] = field(default_factory=list)
    bad_count: int = 0
    unread: dict[str, Aside] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def add(self, row: JobRecord | BadRow) -> None:
        """Take in a row."""
        if isinstance(row, JobRecord):
            if row.run_key in self.records:
                self.notes["twice"] += 1
            self.records[row.run_key] = row
            return
        aside = Aside(row.line + self.first_line - 1, storable(row.reason), storable(row.raw))
        if row.field:
            self.notes[UNREAD + row.field] += 1
            self.unread.setdefault(row.field, aside)
            return
        self.bad_count += 1
        if len(self.bad) < KEPT_BAD:
            self.bad.append(aside)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPage(PagePlace):
    """A raw piece of a source that holds whole runs; `mark` is where the source stands once the page is stored."""

    data: bytes
    mark: int


class ImportSource(Protocol):
    """One thing to import from."""

    @property
    def kind(self) -> str:
        """The file of `sources` whose parser reads the pages."""
        ...

    @property
    def key(self) -> str:
        """What is read, as KIND:FILE or KIND:CLUSTER; its marks and pages are found by it."""
        ...

    @property
    def cluster(self) -> str:
        """The cluster that the runs are of, where they do not say it themselves."""
        ...

    @property
    def context(self) -> Mapping[str, str]:
        """All that the parser needs to know beside a page."""
        ...

    @property
    def size(self) -> int | None:
        """How far positions go, for the progress bar; None where it is not known."""
        ...

    def pages(self, resume: Resume | None) -> Iterator[RawPage]:
        """Yield what has not been read yet; the last page that was stored, `resume`, may come again.

        Raises GpuwasteError, also after some pages.
        """
        ...


Parser = Callable[[bytes, Mapping[str, str], Notes], Iterator[JobRecord | BadRow]]
"""parse(data, context, notes): the runs and bad rows of a page, lines numbered from 1; adds to notes what it counts.

Raises GpuwasteError only where the whole page cannot be read. The count "assumed_starts" (runs whose start is their
submission for want of a wait) decides by which rule the ends of a source are known.
"""

KINDS: Final[ModuleRegistry[Any]] = ModuleRegistry(sources, "parse")
"""The kinds of pages that can be parsed."""


def parser_of(kind: str) -> Parser:
    """Return the parser of a kind. Raises StoreError where this version has none."""
    if kind not in KINDS:
        raise StoreError(f"pages of kind {kind!r}: this version cannot parse them: update gpuwaste")
    parse: Parser = KINDS[kind].parse
    return parse
