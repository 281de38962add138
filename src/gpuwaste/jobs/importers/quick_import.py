"""The import of sacct's text for a single look: into a new store, which keeps no raw pages and only the jobs.

Rows that sacct_table.py leaves over are taken as the bulk import takes them, with the same notes.
"""

import hashlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final

from gpuwaste.core.child_process import map_in_children
from gpuwaste.jobs.importers.bulk_import import Progress, page_row
from gpuwaste.jobs.importers.history_source import ImportSource, RawPage, SortedRows, parser_of
from gpuwaste.jobs.importers.history_store import HistoryStore, PageRow
from gpuwaste.jobs.importers.page_files import Kept
from gpuwaste.slurm.accounting.sacct_file import columns_of
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.accounting.sacct_table import page_table
from gpuwaste.slurm.formats.slurm_times import zone_of

KIND: Final = "sacct"
"""The kind of source that can be read in this way."""
_PROCESSES: Final = 2
_PAGES: Final = 8  # of 8 MiB of text


@dataclass(frozen=True, slots=True)
class QuickPage:
    """A page that was read: files with lines of its jobs and their use, the number of jobs, the rows left over."""

    lines: Path
    uses: Path | None
    jobs: int
    rest: PageRow

    def discard(self) -> None:
        """Remove the files."""
        for file in (self.lines, self.uses):
            if file is not None:
                file.unlink(missing_ok=True)
        self.rest.discard()


def import_quickly(store: HistoryStore, source: ImportSource, progress: Progress = lambda *_: None) -> int:
    """Import a source of sacct's text into a store that is new; return the number of rows that are jobs.

    Raises GpuwasteError as the source does, after the pages before it are stored.
    """
    import_id = store.begin(source.kind, source.key, source.cluster, source.context)
    jobs = 0
    with closing(_read(source, store.files.scratch)) as pages:
        for some in _batches(pages):
            store.add_lines([page.lines for page in some], [page.uses for page in some if page.uses is not None])
            for page in some:
                store.take(import_id, source.key, page.rest)
                jobs += page.jobs + page.rest.runs
                page.discard()
            progress(some[-1].rest.until, jobs)
    store.drop_repeats()
    store.end(import_id, "accounting")
    return jobs


def _batches(pages: Iterable[QuickPage]) -> Iterator[list[QuickPage]]:
    """Yield some pages at a time: DuckDB writes few large inserts in a third of the time of many small ones."""
    rest = iter(pages)
    while some := list(islice(rest, _PAGES)):
        yield some


def _read(source: ImportSource, scratch: Path) -> Generator[QuickPage]:
    """Yield the pages, read in two processes where there are several."""
    read, pages = partial(read_page, source.context, scratch), source.pages(None)
    first, second = next(pages, None), next(pages, None)
    if first is None or second is None:
        yield from map(read, filter(None, (first,)))
        return
    yield from map_in_children(read, chain((first, second), pages), _PROCESSES)


def read_page(context: Mapping[str, str], scratch: Path, page: RawPage) -> QuickPage:
    """Read a page; its files are in the folder `scratch`."""
    columns, delimiter = columns_of(context["columns"].split(",")), context["delimiter"].encode()
    zone, header = zone_of(context["zone"]), context["header"]
    table = page_table(page.data, columns, delimiter, context["cluster"], zone=zone, header=header)
    digest = hashlib.sha256(f"{page.place} {page.number}".encode()).hexdigest()
    lines, uses = _written(scratch / f"{digest}.lines", table.lines), None
    if table.uses:
        uses = _written(scratch / f"{digest}.uses", table.uses)
    found = SortedRows(page.line)
    for first, texts in table.left_over.items():
        for row in parser_of(KIND)("\n".join(texts).encode() + b"\n", context, found.notes):
            found.add(replace(row, line=row.line + first - 1) if isinstance(row, BadRow) else row)
    return QuickPage(lines, uses, len(table.lines), page_row(scratch, page, Kept(digest, len(page.data), 0), found))


def _written(file: Path, lines: Iterable[str]) -> Path:
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return file
