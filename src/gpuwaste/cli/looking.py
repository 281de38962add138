"""What `gpuwaste look` does: accounting into a folder, its jobs into a temporary store, the views, text and pages."""

import argparse
import os
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpuwaste.cli.interrupts import Interrupted
from gpuwaste.cli.time_options import parse_seconds, parse_time
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError, SlurmError, UsageError
from gpuwaste.core.files import TEMPORARY, write_whole
from gpuwaste.core.units import DAY_S

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from gpuwaste.jobs.importers.history_source import ImportSource
    from gpuwaste.slurm.clients.kept_commands import KeptCommands
    from gpuwaste.store.database import Database
    from gpuwaste.views.look.folder import LookFolder
    from gpuwaste.views.look.scope import LookContext
    from gpuwaste.views.look.slices import Progress, ReadingResult
    from gpuwaste.views.look.text import LookReport
    from gpuwaste.views.view_query import Window

_FOLDER: Final = Path("gpuwaste-look")
_DAYS: Final = "now-30days"
_DUCKDB: Final = {"threads": "2", "memory_limit": "192MB", "preserve_insertion_order": "false"}
"""A login node has many users; beyond this memory DuckDB uses temporary files, which are in the folder."""
_CLUSTER: Final = "cluster"


def looked(options: argparse.Namespace) -> str:
    """Look, write the folder, and return the text. Raises GpuwasteError, Interrupted."""
    from gpuwaste.cli.options import terminal_look
    from gpuwaste.show.layout import Look
    from gpuwaste.views.look.folder import LookFolder
    from gpuwaste.views.look.text import look_text

    given: Path | None = options.from_file
    earlier = LookFolder(given) if given is not None and given.is_dir() else None
    folder = LookFolder(options.output or (_FOLDER if earlier is None else earlier.path))
    folder.prepare()
    with _scratch(folder.path) as scratch:
        if earlier is not None:
            jobs = _of_folder(earlier)
        else:
            jobs = _of_slurm(options, folder) if given is None else _of_file(given, options)
        report = _report(scratch / "jobs.duckdb", jobs, folder)
        page = _pages(folder, report)
    write_whole(folder.text, look_text(report, Look()).encode(), mode=0o600)
    return f"{look_text(report, terminal_look())}\n{page}\n"


@dataclass(frozen=True, slots=True)
class _Jobs:
    """The jobs to look at, the window, UTC seconds (None: all of them), and what else is known.

    `machine` are files that describe it, in `time_zone`.
    """

    source: "ImportSource"
    around: "LookContext"
    start: int | None = None
    end: int | None = None
    machine: "Sequence[Path]" = ()
    time_zone: str = ""


@contextmanager
def _scratch(folder: Path) -> "Iterator[Path]":
    """Yield a temporary folder, which is that of this process from now on: nothing is written anywhere else."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=TEMPORARY) as name:
        before, tempfile.tempdir = tempfile.tempdir, name
        try:
            yield Path(name)
        finally:
            tempfile.tempdir = before


def _of_slurm(options: argparse.Namespace, folder: "LookFolder") -> _Jobs:
    """Run Slurm's commands. Raises SlurmError, Interrupted."""
    from gpuwaste.core.groups import user_name
    from gpuwaste.slurm.clients.kept_commands import KeptCommands
    from gpuwaste.views.look.scope import LookContext

    start, end = parse_time(options.starttime or _DAYS), min(parse_time(options.endtime), SystemClock().utc_s())
    if start >= end:
        raise UsageError(f"-S {options.starttime} is not before -E {options.endtime}")
    commands = KeptCommands(folder=folder.machine)
    try:
        columns = commands.accounting_columns()
    except SlurmError as error:
        raise SlurmError(f"{error}; on a host without Slurm, read a file: gpuwaste look --from FILE") from error
    machine, unread = commands.machine(min([start, *(one.start for one in folder.slices()[:1])]))
    viewer = commands.viewer(user_name(os.getuid()))
    reading = _read(commands, columns, folder, (start, end), parse_seconds(options.time_limit))
    return _of_slices(folder, LookContext(viewer, machine, reading, unread), start, end)


def _read(
    commands: "KeptCommands", columns: "Sequence[str]", folder: "LookFolder", window: tuple[int, int], limit_s: float
) -> "ReadingResult":
    """Read accounting into the folder. Raises UsageError, Interrupted."""
    from gpuwaste.slurm.clients.command_client import new_delimiter
    from gpuwaste.views.look.slices import ReadingLimits, SliceReader, job_columns

    folder.begin(job_columns(columns), new_delimiter())
    names, delimiter, header = folder.columns()

    def lines(start: int, end: int, timeout_s: float) -> "Generator[bytes]":
        return commands.job_lines(start, end, names, delimiter, timeout_s)

    with _progress() as progress:
        reader = SliceReader(folder, lines, SystemClock(), ReadingLimits(total_s=limit_s), progress)
        try:
            return reader.read(*window, header)
        except KeyboardInterrupt as stop:
            raise Interrupted(
                f"{folder.path} keeps what was read: run the same command again to read the rest, or gpuwaste look "
                f"--from {folder.path} to see it"
            ) from stop


def _of_folder(folder: "LookFolder") -> _Jobs:
    """Read what an earlier look kept. Raises UsageError."""
    from gpuwaste.slurm.clients.kept_commands import KeptCommands
    from gpuwaste.views.look.scope import LookContext
    from gpuwaste.views.look.slices import ReadingResult

    slices = folder.slices()
    if not slices:
        raise NoDataError(f"{folder.accounting}: no accounting: not a folder of gpuwaste look, or nothing was read")
    start, end = slices[0].start, max(one.end for one in slices)
    commands = KeptCommands(folder=folder.machine, replay=True)
    machine, unread = commands.machine(start)
    reading = ReadingResult(folder.gaps(start, end), "an earlier look ended before")
    return _of_slices(folder, LookContext(commands.viewer(""), machine, reading, unread), start, end)


def _of_slices(folder: "LookFolder", around: "LookContext", start: int, end: int) -> _Jobs:
    """Return the jobs of a folder, from the last time on that was not read. Raises NoDataError, UsageError."""
    from gpuwaste.views.look.slices_source import SlicesSource

    gaps = around.reading.unread
    begin = gaps[-1][1] if gaps else start
    if begin >= end:
        raise NoDataError(f"nothing of accounting was read: {around.reading.reason}")
    cluster = _CLUSTER if around.machine is None else around.machine.model.name
    return _Jobs(SlicesSource(folder, cluster, begin), around, begin, end)


def _of_file(file: Path, options: argparse.Namespace) -> _Jobs:
    """Read a file. Raises UsageError, ParseError."""
    from gpuwaste.cli.job_sources import local_zone
    from gpuwaste.jobs.importers.file_source import sacct_file
    from gpuwaste.views.look.scope import LookContext

    start = None if options.starttime is None else parse_time(options.starttime)
    end = None if options.endtime == "now" else parse_time(options.endtime)
    source = sacct_file(file, options.clusters or _CLUSTER, zone=options.time_zone or local_zone())
    return _Jobs(source, LookContext(), start, end, options.machine or (), options.time_zone)


def _report(path: Path, jobs: _Jobs, folder: "LookFolder") -> "LookReport":
    """Import the jobs into a store at `path`, and view them. Raises GpuwasteError."""
    from gpuwaste.jobs.importers import quick_import
    from gpuwaste.jobs.importers.bulk_import import import_source
    from gpuwaste.jobs.importers.history_store import HistoryStore
    from gpuwaste.store.database import Database
    from gpuwaste.views.unread_rows import unread_rows

    with closing(HistoryStore.open(path, SystemClock(), _DUCKDB)) as store:
        if jobs.source.kind == quick_import.KIND:
            quick_import.import_quickly(store, jobs.source)
        else:
            import_source(store, path, jobs.source)
    with closing(Database.open(path, "hub", _DUCKDB)) as db:
        if db.rows("job_clusters"):
            return _viewed(db, jobs, folder)
        unread = "".join(f": {note}" for note in unread_rows(db)[:1])
        raise NoDataError(f"{jobs.source.key}: no job in this time that this user can see{unread}")


def _viewed(db: "Database", jobs: _Jobs, folder: "LookFolder") -> "LookReport":
    from msgspec import structs

    from gpuwaste.cli.view_answers import StoreAnswers, ViewPeriod
    from gpuwaste.views.look.machine import LEFT_OUT, balance_start
    from gpuwaste.views.look.scope import LookScope, not_read, whose, with_an_agent
    from gpuwaste.views.look.text import BALANCE, LookReport, in_order
    from gpuwaste.views.look.use import UseInAccounting
    from gpuwaste.views.ranking import by_finding
    from gpuwaste.views.view_query import ViewQuery

    around, period = jobs.around, ViewPeriod(jobs.start, jobs.end, ())
    window = StoreAnswers(db, Config(), ()).window(period)
    scope = LookScope.of(ViewQuery(db, window))
    entire = scope.has_all_jobs(around.viewer)
    counted = replace(window, start=balance_start(window, jobs.start))
    bad_rows, assumed = _balance(db, jobs, counted) if entire else ((), ())
    answers, periods = StoreAnswers(db, Config(), bad_rows), {BALANCE: replace(period, start=counted.start)}
    first = [whose(scope, around.viewer), *not_read(around, str(folder.path)), *(() if entire else (LEFT_OUT,))]
    names = [name for name in answers.names() if entire or name != BALANCE]
    found = by_finding(answers.view(name, periods.get(name, period)) for name in names)
    documents = [structs.replace(one, notes=[*one.notes, *first]) for one in in_order(found)]
    use = UseInAccounting.of(ViewQuery(db, window))
    agent = with_an_agent(scope, around, use, window.end - window.start)
    not_all = [*first[1:], *answers.unread]
    return LookReport(first[0], not_all, documents, list(use.sentences(scope.gpu_s)), agent, assumed)


def _balance(db: "Database", jobs: _Jobs, window: "Window") -> "tuple[Sequence[str], Sequence[str]]":
    """Store the machine and its balance; return notes on rows that could not be read, and what is assumed."""
    from gpuwaste.cli.view_answers import bring_machines
    from gpuwaste.views.look.machine import count_balance, store_machine

    if jobs.around.machine is not None:
        store_machine(db, jobs.around.machine)
    bad_rows = bring_machines(db, jobs.machine, jobs.time_zone)
    return bad_rows, count_balance(db, [row["cluster"] for row in db.rows("job_clusters")], window)


def _pages(folder: "LookFolder", report: "LookReport") -> str:
    """Write the pages; return the first one's path, or what to install for them."""
    from importlib.util import find_spec

    if find_spec("jinja2") is None:
        return "no pages: Python's jinja2 is not installed: install gpuwaste[look]"
    from gpuwaste.cli.analysis import write_pages

    return str(write_pages(folder.pages, [(document.view, document) for document in report.documents]))


@contextmanager
def _progress() -> "Iterator[Progress]":
    """Show what was read of accounting on a line of stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    began = time.monotonic()

    def show(read_s: int, total_s: int, lines: int) -> None:
        days = f"{read_s / DAY_S:.1f} of {total_s / DAY_S:.0f} days"
        sys.stderr.write(f"\r\x1b[Ksacct: {days}, {lines:,} jobs, {time.monotonic() - began:.0f} s")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
