"""One page's work, in this process or in a pool's: keep the raw bytes, parse them, write the runs as JSON."""

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

from gpuwaste.core.child_process import ChildEnded, map_in_children
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.text import decoded
from gpuwaste.jobs.importers.history_store import PageRow
from gpuwaste.jobs.importers.page_files import Kept, PageFiles
from gpuwaste.jobs.importers.parsed_page import Notes, SortedRows
from gpuwaste.jobs.importers.source import RawPage, parser_of
from gpuwaste.jobs.importers.user_names import SAME, UserNames
from gpuwaste.jobs.run_rows import job_row, step_rows
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.accounting.sacct import BadRow
from gpuwaste.store.hub.json_rows import NO_ROWS, to_json


def work_page(
    kind: str,
    context: Mapping[str, str],
    store: Path,
    page: RawPage,
    kept: Kept | None = None,
    *,
    users: UserNames = SAME,
) -> PageRow:
    """Keep a page, unless it is `kept` already, and parse it; the rows are in a scratch file of the store."""
    files = PageFiles(store)
    kept = kept or files.keep(page.data)
    found = SortedRows(page.line)
    for row in _parsed(kind, context, page, found.notes):
        found.add(users.renamed(row) if isinstance(row, JobRecord) else row)
    rows = files.scratch / f"{kept.digest}.{os.getpid()}.json"
    rows.write_text(to_json(job_row(run) for run in found.records.values()), encoding="utf-8")
    steps = to_json(step_rows(found.records.values()))
    step_file = rows.with_suffix(".steps.json") if steps != NO_ROWS else None
    if step_file is not None:
        step_file.write_text(steps, encoding="utf-8")
    lines = page.data.count(b"\n") + (not page.data.endswith(b"\n"))
    return PageRow(
        number=page.number,
        place=page.place,
        digest=kept.digest,
        size_b=kept.size_b,
        packed_b=kept.packed_b,
        position=page.position,
        until=page.until,
        line=page.line,
        lines=lines,
        runs=len(found.records),
        rows=rows,
        bad=found.bad,
        bad_count=found.bad_count,
        unread=found.unread,
        notes=dict(found.notes),
        mark=page.mark,
        steps=step_file,
    )


def work_pages(
    kind: str,
    context: Mapping[str, str],
    store: Path,
    pages: Iterable[RawPage],
    processes: int,
    *,
    users: UserNames = SAME,
) -> Generator[PageRow]:
    """Yield the pages' rows in their order; `processes` under 2, or a single page, need no pool.

    Raises GpuwasteError as the pages and the parser do, after the pages before.
    """
    rest, work = iter(pages), partial(work_page, kind, context, store, users=users)
    first = next(rest, None)
    if first is None:
        return
    second = next(rest, None) if processes > 1 else None
    if second is None:
        yield work(first)
        yield from map(work, rest)
        return
    pages = chain([first, second], rest)
    try:
        yield from map_in_children(work, pages, processes)
    except ChildEnded as error:
        raise GpuwasteError(f"parsing raw pages: {error}: try --threads 1") from error


def _parsed(kind: str, context: Mapping[str, str], page: RawPage, notes: Notes) -> Iterator[JobRecord | BadRow]:
    """Parse a page; where it cannot be read as a whole it is one bad row, and kept."""
    parse = parser_of(kind)
    try:
        yield from parse(page.data, context, notes)
    except GpuwasteError as error:
        yield BadRow(1, str(error), decoded(page.data[:200]))
