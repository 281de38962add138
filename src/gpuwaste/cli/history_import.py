"""What `gpuwaste history` does: the source that the options name, its import with a progress bar, the answer."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwaste.cli.interrupts import Interrupted
from gpuwaste.cli.job_sources import file_source, recognise
from gpuwaste.cli.options import as_text
from gpuwaste.cli.time_options import parse_time
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, StoreError, UsageError
from gpuwaste.core.owner import become_owner
from gpuwaste.core.units import DAY_S, format_size

if TYPE_CHECKING:
    from gpuwaste.core.fields import Document
    from gpuwaste.jobs.importers.accounting_windows import AccountingPeriod
    from gpuwaste.jobs.importers.bulk_import import Progress
    from gpuwaste.jobs.importers.history_source import ImportSource
    from gpuwaste.jobs.importers.history_store import HistoryStore
    from gpuwaste.jobs.importers.import_result import ImportResult
    from gpuwaste.store.lake_database import LakeLocation

Answer = tuple["Document", str]
_SCRATCH = "history.tmp"  # of DuckDB, in the hub's state_dir


def bring(options: argparse.Namespace, config: Config) -> Answer:
    """Import. Raises GpuwasteError; NoDataError where there is nothing to import."""
    from gpuwaste.jobs.importers.bulk_import import import_again, import_source
    from gpuwaste.jobs.importers.history_status import ImportsDocument
    from gpuwaste.jobs.importers.user_names import read_user_names

    users = read_user_names(config.hub.user_names_file, config.common.cluster)
    path = _store_path(options, config)
    _become_owner(path, options)
    lake = _lake(options, config)
    with _opened_to_write(path, lake) as store:
        if options.again:
            with import_progress("pages", len(store.kept_pages())) as progress:
                results = import_again(store, path, progress=progress, users=users)
            if not results:
                raise NoDataError(f"{path}: no raw pages in this store: import something first")
        else:
            source = _source(options, config)
            with _resumable(store, source.key, path), import_progress(source.key, source.size) as progress:
                users = users.without(source.cluster) if options.sacct_live or options.slurmrestd else users
                results = [
                    import_source(store, path, source, processes=options.threads, progress=progress, users=users)
                ]
            if not results[0].pages and store.resume(source.key) is None:
                raise NoDataError(f"{source.key}: empty: nothing to import")
    place = str(path if lake is None else lake.data)
    document = ImportsDocument(store=place, again=options.again, imports=results)
    return document, "".join(_line(result) for result in results) + f"store {place}\n"


def bring_as_job(options: argparse.Namespace, config: Config) -> int:
    """Submit the import as a job of Slurm, its log next to the store. Raises UsageError, SlurmError."""
    from gpuwaste.cli.as_job import submit_and_tell

    if options.into is None:
        raise UsageError("import --as-job: give a store on shared disk with --into: the hub's own is open on its host")
    store = options.into.resolve()
    _become_owner(store, options)  # the job runs as the user who submits it
    return submit_and_tell(options, config, "import", store.parent)


def stand(options: argparse.Namespace, config: Config) -> Answer:
    """Print what the store holds. Raises NoDataError where there is none."""
    from gpuwaste.jobs.importers.history_status import status_document, status_text

    path = _store_path(options, config)
    become_owner(path)
    lake = _lake(options, config)
    if lake is None and not path.exists():
        raise NoDataError(f"{path}: no store in this place: run gpuwaste history import first")
    with _opened_to_read(path, lake) as store:
        document = status_document(store, str(path if lake is None else lake.data), SystemClock().utc_s())
    return document, as_text(document, status_text)


@contextmanager
def _resumable(store: "HistoryStore", key: str, path: Path) -> "Iterator[None]":
    """Raise Interrupted at Ctrl-C where the imported part is kept."""
    try:
        yield
    except KeyboardInterrupt as stop:
        with suppress(GpuwasteError):
            if store.resume(key) is not None:
                raise Interrupted(f"{path} has the pages so far: run the same command again to continue") from stop
        raise


@contextmanager
def _opened_to_write(path: Path, lake: "LakeLocation | None") -> "Iterator[HistoryStore]":
    """Yield the store at `path`, or the lake instead, on which no hub may run meanwhile. Raises StoreError."""
    from gpuwaste.hub.lake_command import lake_without_hubs
    from gpuwaste.jobs.importers.history_store import HistoryStore

    if lake is None:
        with _new_file_or_none(path), closing(HistoryStore.open(path, SystemClock())) as store:
            yield store
        return
    with lake_without_hubs(lake, "gpuwaste history import") as holder:
        if holder:
            raise StoreError(
                f"lake {lake.data}: a hub runs on it: {holder}: stop all hubs of the lake meanwhile, or write to a file"
                " with --into"
            )
        with closing(HistoryStore.open_lake(lake, path, SystemClock(), path.with_name(_SCRATCH))) as store:
            yield store


def _opened_to_read(path: Path, lake: "LakeLocation | None") -> "AbstractContextManager[HistoryStore]":
    from gpuwaste.jobs.importers.history_store import HistoryStore

    if lake is None:
        return closing(HistoryStore.open(path, SystemClock()))
    return closing(HistoryStore.read_lake(lake, path, SystemClock(), path.with_name(_SCRATCH)))


def _lake(options: argparse.Namespace, config: Config) -> "LakeLocation | None":
    """Return the hub's lake, None where the store is a file. Raises ConfigError."""
    from gpuwaste.hub.store_choice import lake_location

    return lake_location(config.hub) if options.into is None else None


def _become_owner(store: Path, options: argparse.Namespace) -> None:
    """Become the owner of the store's directory. Raises UsageError for a file to import that the owner cannot read."""
    recognise(options)
    owner = become_owner(store)
    for file in (options.sacct, options.swf, options.csv_file, options.mapping):
        if owner is not None and file is not None and not os.access(file, os.R_OK):
            raise UsageError(f"{file}: {owner.name}, the owner of {store.parent}, cannot read it: chmod or chgrp it")


def _store_path(options: argparse.Namespace, config: Config) -> Path:
    return options.into or Path(config.hub.state_dir) / "hub.duckdb"


def _source(options: argparse.Namespace, config: Config) -> "ImportSource":
    """Return the source that the options name. Raises UsageError, ParseError, SlurmError."""
    if getattr(options, "store", None) is not None:
        raise UsageError(f"{options.store}: a store of gpuwaste: import what it was made from")
    if options.swf is not None:
        from gpuwaste.jobs.importers.sources.swf import SwfFile

        return SwfFile(options.swf, options.clusters)
    if options.csv_file is not None or options.sacct is not None:
        return file_source(options, config, options.format)
    return _live(options, config)


def _live(options: argparse.Namespace, config: Config) -> "ImportSource":
    from gpuwaste.slurm.clients.command_client import CommandClient

    common, period = config.common, _period(options, config)
    commands = CommandClient(slurm_conf=common.slurm_conf, timeout_s=common.slurm_timeout_s)
    if not options.slurmrestd:
        from gpuwaste.jobs.importers.sources.sacct import SacctLive

        if options.clusters and options.clusters not in (known := commands.clusters()):  # sacct would list no job
            raise UsageError(f"--clusters {options.clusters}: slurmdbd has no such cluster, only: {', '.join(known)}")
        cluster = options.clusters or common.cluster or commands.cluster_name()
        return SacctLive(commands, cluster, period, asked=options.clusters)
    from gpuwaste.jobs.importers.sources.slurmrestd import Slurmrestd
    from gpuwaste.slurm.clients.rest_client import RestClient
    from gpuwaste.slurm.clients.rest_http import RestServer

    if not common.slurmrestd_url:
        raise UsageError("--slurmrestd: set common.slurmrestd_url (and slurmrestd_token_file) in the configuration")
    server = RestServer(common.slurmrestd_url, common.slurmrestd_token_file, common.slurm_timeout_s)
    client = RestClient(commands, server, cluster=options.clusters or common.cluster)
    return Slurmrestd(client, client.cluster_name(), period)


def _period(options: argparse.Namespace, config: Config) -> "AccountingPeriod":
    from gpuwaste.jobs.importers.accounting_windows import AccountingPeriod

    now = datetime.now()  # noqa: DTZ005 the caller's own zone is meant
    start = None if options.starttime is None else parse_time(options.starttime, now)
    end = min(parse_time(options.endtime, now), SystemClock().utc_s())
    if start is not None and start >= end:
        raise UsageError(f"-S {options.starttime} is not before -E {options.endtime}")
    return AccountingPeriod(
        start,
        end,
        window_s=options.window_days * DAY_S,
        overlap_s=int(config.hub.sacct_overlap_s),
        first_s=config.hub.sacct_first_days * DAY_S,
    )


@contextmanager
def import_progress(what: str, total: int | None) -> "Iterator[Progress]":
    """Show a bar where stderr is a terminal and tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda *_: None
        return
    pages = what == "pages"
    with tqdm(total=total, desc=what[-40:], unit="page" if pages else "B", disable=not sys.stderr.isatty()) as bar:
        runs = 0

        def show(until: int, count: int) -> None:
            nonlocal runs
            runs += count
            bar.set_postfix(runs=runs, refresh=False)
            bar.update(1 if pages else max(0, until - bar.n) if total else 1)

        yield show


def _line(result: "ImportResult") -> str:
    """Return the line about an import for a person."""
    if not result.pages:
        return f"{result.key}: nothing new\n"
    rate = f" ({result.runs / result.seconds:,.0f}/s)" if result.seconds >= 1 else ""
    pages = f"{result.pages:,} raw {'page' if result.pages == 1 else 'pages'} kept"
    head = (
        f"{result.key}: {result.runs:,} runs in {result.seconds:.1f} s{rate}, {result.changed:,} new or changed; "
        f"{pages}, {format_size(result.size_b)}, stored as {format_size(result.packed_b)}"
    )
    lines = [head]
    if result.end_rule != "accounting":
        lines.append("  the source has no waits: starts are set to the submissions, ends to submission + run time")
    if result.bad:
        lines.append(
            f"  {result.bad:,} {'row' if result.bad == 1 else 'rows'} could not be read; see gpuwaste history status:"
        )
        lines += [f"    line {bad.line:,}: {bad.reason}" for bad in result.first_bad]
    lines += [
        f"  {name} is unknown in {first.runs:,} runs: first at line {first.line:,}: {first.reason}"
        for name, first in sorted(result.unread.items())
    ]
    if result.notes.get("twice"):
        lines.append(f"  {result.notes['twice']:,} rows repeat the run of an earlier row")
    return "\n".join(lines) + "\n"


@contextmanager
def _new_file_or_none(path: Path) -> Iterator[None]:
    """Remove the store at `path`, with its pages, where it is new and the work in it fails before its first page.

    A store that existed before is kept, and so is one with a page: the same import continues from there.
    """
    if path.exists():
        yield
        return
    missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        yield
    except BaseException:
        if not _has_pages(path):
            _remove(path, missing)
        raise


def _has_pages(path: Path) -> bool:
    from gpuwaste.jobs.importers.history_store import HistoryStore

    if not path.exists():
        return False
    try:
        with closing(HistoryStore.open(path, SystemClock())) as store:
            return bool(store.kept_pages())
    except GpuwasteError:
        return path.stat().st_size > 0  # unknown: the store is kept


def _remove(path: Path, folders: list[Path]) -> None:
    from gpuwaste.jobs.importers.page_files import PageFiles

    for file in (path, path.with_name(path.name + ".wal")):
        file.unlink(missing_ok=True)
    shutil.rmtree(PageFiles(path).folder, ignore_errors=True)
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()
