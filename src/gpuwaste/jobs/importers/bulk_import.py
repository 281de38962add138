"""The bulk import: pages of a source into the store, one after the other, and kept pages again.

A page is processed in this process or in a pool: keep the raw bytes, parse them, write the runs as JSON.
"""

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.child_process import ChildEnded, map_in_children
from gpuwaste.core.errors import GpuwasteError, NoDataError
from gpuwaste.core.text import decoded
from gpuwaste.jobs.importers.history_source import EACH_ONCE, ImportSource, Notes, RawPage, SortedRows, parser_of
from gpuwaste.jobs.importers.history_store import HistoryStore, KeptPage, PageRow
from gpuwaste.jobs.importers.import_result import ImportResult
from gpuwaste.jobs.importers.page_files import Kept, PageFiles
from gpuwaste.jobs.importers.user_names import SAME, UserNames
from gpuwaste.jobs.run_changes import job_row, step_rows, use_rows
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.store.hub.json_rows import NO_ROWS, to_json

ASSUMED: Final = "submit + run"
_FEW_ASSUMED: Final = 0.01  # a source with a smaller share of assumed starts has waits

Progress = Callable[[int, int], None]
"""progress(until, runs): the position up to which the source was read, and the runs of the page."""


def work_page(
    kind: str,
    context: Mapping[str, str],
    store: Path,
    page: RawPage,
    kept: Kept | None = None,
    *,
    users: UserNames = SAME,
) -> PageRow:
    """Keep a page, unless it is already `kept`, and parse it; the rows are in a scratch file of the store."""
    files = PageFiles(store)
    kept = kept or files.keep(page.data)
    found = SortedRows(page.line)
    for row in _parsed(kind, context, page, found.notes):
        found.add(users.renamed(row) if isinstance(row, JobRecord) else row)
    return page_row(files.scratch, page, kept, found)


def page_row(scratch: Path, page: RawPage, kept: Kept, found: SortedRows) -> PageRow:
    """Return the rows of a page, written to files in the folder `scratch`."""
    rows = scratch / f"{kept.digest}.{os.getpid()}.json"
    rows.write_text(to_json(job_row(run) for run in found.records.values()), encoding="utf-8")
    steps = _written(rows.with_suffix(".steps.json"), step_rows(found.records.values()))
    uses = _written(rows.with_suffix(".uses.json"), use_rows(found.records.values()))
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
        steps=steps,
        uses=uses,
    )


def _written(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path | None:
    """Write the rows as a JSON array; None, and no file, without rows."""
    text = to_json(rows)
    if text == NO_ROWS:
        return None
    path.write_text(text, encoding="utf-8")
    return path


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

    Raises GpuwasteError as the pages and the parser do, after the pages before the error.
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
    """Parse a page; a page that cannot be read at all is one bad row, and kept."""
    parse = parser_of(kind)
    try:
        yield from parse(page.data, context, notes)
    except GpuwasteError as error:
        yield BadRow(1, str(error), decoded(page.data[:200]))


def import_source(
    store: HistoryStore,
    path: Path,
    source: ImportSource,
    *,
    processes: int = 1,
    progress: Progress = lambda *_: None,
    users: UserNames = SAME,
) -> ImportResult:
    """Import the new data of a source; each page is stored with its mark before the next one.

    Runs are stored under the names on the hub's host, by `users`.
    Raises NoDataError, with nothing stored, where the first page has only bad rows; GpuwasteError as the source does,
    after the pages before it are stored.
    """
    began = time.monotonic()
    result = ImportResult(source.kind, source.key, source.cluster)
    resume = store.resume(source.key)
    import_id: int | None = None
    store.forget_taken()
    pages = work_pages(source.kind, source.context, path, source.pages(resume), processes, users=users)
    with closing(pages):  # however this ends, no process writes next to the store any more
        for page in pages:
            if import_id is None:
                if resume is None and page.bad_count and not page.runs:
                    raise _refused(store, source, page)
                import_id = store.begin(source.kind, source.key, source.cluster, source.context)
            result.add(*store.take(import_id, source.key, page, once=source.kind in EACH_ONCE))
            page.discard()
            progress(page.until, page.runs)
    result.end_rule = _end_rule(store, source.key)
    if import_id is None and resume is not None and not resume.ended:  # it was interrupted after its last page
        import_id = store.begin(source.kind, source.key, source.cluster, source.context)
    if import_id is not None:
        store.end(import_id, result.end_rule)
    result.seconds = time.monotonic() - began
    return result


def _refused(store: HistoryStore, source: ImportSource, page: PageRow) -> NoDataError:
    """Drop a first page without a run, and return the error: the file is not of that kind."""
    page.discard()
    store.drop(page.digest)
    first = page.bad[0]
    return NoDataError(
        f"{source.key}: read as {source.kind}, and no job in its first {page.bad_count} rows: "
        f"line {first.line}: {first.reason}"
    )


def import_again(
    store: HistoryStore, path: Path, *, progress: Progress = lambda *_: None, users: UserNames = SAME
) -> list[ImportResult]:
    """Parse every kept page again, in the order in which they were read, and store the new result."""
    results: dict[str, ImportResult] = {}
    for kept in store.kept_pages():
        if kept.key not in results:
            store.forget_taken()
        began = time.monotonic()
        page = read_again(store.files, path, kept, users)
        result = results.setdefault(kept.key, ImportResult(kept.kind, kept.key, kept.context.get("cluster", "")))
        result.add(*store.take_again(kept.import_id, page, once=kept.kind in EACH_ONCE))
        page.discard()
        result.seconds += time.monotonic() - began
        progress(1, page.runs)
    for key, result in results.items():
        result.end_rule = _end_rule(store, key)
    return list(results.values())


def read_again(files: PageFiles, path: Path, kept: KeptPage, users: UserNames = SAME) -> PageRow:
    """Parse a kept page of the store at `path`. Raises StoreError where it is gone, damaged or of a newer version."""
    data = files.read(kept.digest)
    raw = RawPage(
        number=kept.number,
        place=kept.place,
        data=data,
        position=kept.position,
        until=kept.until,
        mark=kept.until,
        line=kept.line,
    )
    return work_page(kept.kind, kept.context, path, raw, Kept(kept.digest, len(data), 0), users=users)


def _end_rule(store: HistoryStore, key: str) -> str:
    """Return the rule by which the ends of a source's runs are known."""
    runs, notes = store.notes(key)
    assumed = notes.get("assumed_starts", 0)
    return ASSUMED if assumed > _FEW_ASSUMED * runs else "accounting"
