"""A source of history: raw pages, a parser that needs only a page and its context, and the returned rows.

A module of `gpuwaste.jobs.importers.sources` has `parse` with the signature of `Parser`; its name is the kind that is
stored with its pages, by which they can be parsed again years later.
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

Notes = Counter[str]  # counts of a parser, by name
KEPT_BAD: Final = 2000  # bad rows of a piece that are quarantined; all are counted
EACH_ONCE: Final = frozenset({"csv"})  # kinds with one row per run: a second row of a run belongs to another run
PAGE_B: Final = 8 * 1024**2  # approximate size of a file's page


@dataclass(slots=True)
class SortedRows:
    """The rows of a piece of accounting whose first line is `first_line`; a later row of a run replaces an earlier one.

    A row with a single field that cannot be read is still a run; `unread` has the first such row of each field.
    """

    first_line: int = 1
    records: dict[RunKey, JobRecord] = field(default_factory=dict)
    bad: list[Aside] = field(default_factory=list)
    bad_count: int = 0
    unread: dict[str, Aside] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def add(self, row: JobRecord | BadRow) -> None:
        """Add a row."""
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
    """A raw piece of a source that holds complete runs; `mark` is the source's position once the page is stored."""

    data: bytes
    mark: int


class ImportSource(Protocol):
    """One thing to import from."""

    @property
    def kind(self) -> str:
        """The module of `sources` whose parser reads the pages."""
        ...

    @property
    def key(self) -> str:
        """The name of what is read, KIND:FILE or KIND:CLUSTER; the key of its marks and pages."""
        ...

    @property
    def cluster(self) -> str:
        """The cluster of the runs, where they do not name it themselves."""
        ...

    @property
    def context(self) -> Mapping[str, str]:
        """Everything that the parser needs in addition to a page."""
        ...

    @property
    def size(self) -> int | None:
        """The last position, for the progress bar; None where it is not known."""
        ...

    def pages(self, resume: Resume | None) -> Iterator[RawPage]:
        """Yield the pages that have not been read yet; the last page that was stored, `resume`, may be repeated.

        Raises GpuwasteError, also after some pages.
        """
        ...


Parser = Callable[[bytes, Mapping[str, str], Notes], Iterator[JobRecord | BadRow]]
"""parse(data, context, notes): the runs and bad rows of a page, lines numbered from 1; adds its counts to notes.

Raises GpuwasteError only where the entire page cannot be read. The count "assumed_starts" (runs whose start is their
submission because the wait is missing) decides by which rule the ends of a source are known.
"""

KINDS: Final[ModuleRegistry[Any]] = ModuleRegistry(sources, "parse")
"""The kinds of pages that can be parsed."""


def parser_of(kind: str) -> Parser:
    """Return the parser of a kind. Raises StoreError where this version has none."""
    if kind not in KINDS:
        raise StoreError(f"pages of kind {kind!r}: this version cannot parse them: update gpuwaste")
    parse: Parser = KINDS[kind].parse
    return parse
