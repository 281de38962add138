"""The options that name a history to learn from or to judge by, and the jobs that they name."""

import argparse
import os
from typing import TYPE_CHECKING

from gpuwaste.cli.options import add
from gpuwaste.cli.words import path_word
from gpuwaste.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuwaste.core.config import Config
    from gpuwaste.jobs.importers.source import ImportSource as Pages
    from gpuwaste.models.job_source import JobSource


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add --store, --swf, --sacct and --csv with what they need."""
    source = parser.add_mutually_exclusive_group()
    add(source, "store", shown="the hub's store, or the hub", nargs="?")
    for name in ("swf", "sacct", "csv-file"):
        add(source, name)
    add(parser, "mapping")
    add(parser, "delimiter", default="|")
    add(parser, "time-zone", default="", shown="this host's")
    add(parser, "clusters", default="", shown="common.cluster")


def source_of(options: argparse.Namespace, config: "Config", *, energy: bool = False) -> "JobSource":
    """Read the jobs; `energy`: with what a store has of their GPUs' energy.

    Raises NoDataError, UsageError, ParseError, StoreError, WireError, AuthError.
    """
    if options.sacct is not None or options.csv is not None:
        wanted = options.clusters if options.csv is None else ""  # a mapping may name another one
        return _through_a_store(file_source(options, config), options.sacct or options.csv, wanted)
    return known_source(options, config, energy=energy)


def known_source(options: argparse.Namespace, config: "Config", *, energy: bool = False) -> "JobSource":
    """Read a log, a store, or the hub's own jobs: of its store where no hub holds it, else through the hub.

    Raises as source_of.
    """
    from gpuwaste.models.job_source import load_source, load_store, load_swf

    if options.swf is not None:
        return load_swf(options.swf, options.clusters)
    from gpuwaste.ledger.ledger_settings import LedgerSettings

    under_use = LedgerSettings.from_config(config.hub).under_use
    if options.store is not None:
        if not options.store.exists():
            raise UsageError(f"{options.store}: no such file: --store names a store that gpuwaste history import wrote")
        return load_store(options.store, options.clusters, under_use, energy=energy)
    from gpuwaste.cli.hub_access import hub_client

    store = path_word(config.hub.state_dir) / "hub.duckdb" if config.hub.store == "file" else None
    cluster = options.clusters or config.common.cluster
    return load_source(store, hub_client(config), cluster, under_use=under_use, energy=energy)


def file_source(options: argparse.Namespace, config: "Config", columns: str = "") -> "Pages":
    """Return the pages of the file of --csv or --sacct. Raises UsageError, ConfigError, ParseError."""
    from gpuwaste.jobs.importers.file_source import csv_file, sacct_file

    zone, cluster = options.time_zone or local_zone(), options.clusters or config.common.cluster
    if options.csv is not None:
        return csv_file(options.csv, options.mapping, cluster, zone=zone)
    return sacct_file(options.sacct, cluster, delimiter=options.delimiter, columns=columns, zone=zone)


def local_zone() -> str:
    """Return this host's zone by TZ or /etc/localtime, UTC where neither names one."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named and not named.startswith("/"):
        return named
    try:
        target = os.readlink("/etc/localtime")  # noqa: PTH115 pathlib costs start-up
    except OSError:
        return "UTC"
    return target.partition("zoneinfo/")[2].removeprefix("posix/") or "UTC"


def _through_a_store(pages: "Pages", file: "Path", cluster: str) -> "JobSource":
    """Import into a store that is thrown away, so that a file is read by the same rules as the site's history.

    `cluster` is the one that is meant where the file names several.
    """
    import tempfile
    from contextlib import closing
    from dataclasses import replace
    from pathlib import Path

    from gpuwaste.core.clock import SystemClock
    from gpuwaste.jobs.importers.history_store import HistoryStore
    from gpuwaste.jobs.importers.importer import import_source
    from gpuwaste.models.job_source import load_store

    with tempfile.TemporaryDirectory(prefix="gpuwaste-history-") as folder:
        path = Path(folder) / "history.duckdb"
        with closing(HistoryStore.open(path, SystemClock())) as store:
            result = import_source(store, path, pages)
        found = load_store(path, cluster)
    bad = f", {result.bad} rows of it could not be read" if result.bad else ""
    unread = (f"{result.bad} rows of {file.name} could not be read",) if result.bad else ()
    return replace(found, text=f"{file.name}{bad}", unread=unread)
