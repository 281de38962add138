"""The options that name jobs, and the jobs: a history, or a load that a generator draws, after steps of time travel.

With --strict, jobs that cannot be simulated are an error, not left out.
"""

import argparse
import os
from typing import TYPE_CHECKING, Any

from gpuwaste.cli.options import DETECTED, add
from gpuwaste.cli.words import path_word
from gpuwaste.core.errors import GpuwasteError, ParseError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuwaste.core.config import Config
    from gpuwaste.jobs.history.job_table import JobTable
    from gpuwaste.jobs.importers.history_source import ImportSource as Pages
    from gpuwaste.models.job_source import JobSource
    from gpuwaste.sim.document import SimulationDocument
    from gpuwaste.sim.parameters import NamedParameters

_SOURCES = ("store", "swf", "sacct", "csv_file", "from_file")


def add_sources(parser: Any) -> None:
    """Add --from, --store, --swf, --sacct and --csv-file with their options."""
    source = parser.add_mutually_exclusive_group()
    add(source, "from", DETECTED, dest="from_file")
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
    recognise(options)
    if options.sacct is not None or options.csv_file is not None:
        wanted = options.clusters if options.csv_file is None else ""  # a mapping may name another one
        return _through_a_store(file_source(options, config), options.sacct or options.csv_file, wanted)
    return known_source(options, config, energy=energy)


def recognise(options: argparse.Namespace) -> None:
    """Give the files of --from to the option of their kind. Raises UsageError for one whose kind is not clear."""
    from gpuwaste.jobs.importers.file_source import kind_of

    given, options.from_file = options.from_file, None
    for file in given if isinstance(given, list) else [given] if given else []:
        name = kind_of(file, mapped=options.mapping is not None)
        setattr(options, name, [*(getattr(options, name) or ()), file] if isinstance(given, list) else file)


def known_source(options: argparse.Namespace, config: "Config", *, energy: bool = False) -> "JobSource":
    """Read a log, a store, or the hub's own jobs: from its store where no hub has it open, else through the hub.

    Raises as source_of.
    """
    from gpuwaste.models.job_source import load_source, load_store, load_swf

    if options.swf is not None:
        return load_swf(options.swf, options.clusters)
    from gpuwaste.ledger.ledger import LedgerSettings

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
    """Return the pages of the file of --csv-file or --sacct. Raises UsageError, ConfigError, ParseError."""
    from gpuwaste.jobs.importers.file_source import csv_file, sacct_file

    zone, cluster = options.time_zone or local_zone(), options.clusters or config.common.cluster
    if options.csv_file is not None:
        return csv_file(options.csv_file, options.mapping, cluster, zone=zone)
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
    """Import into a temporary store, so that a file is read by the same rules as the site's history.

    `cluster` is the wanted one where the file names several.
    """
    import tempfile
    from contextlib import closing
    from dataclasses import replace
    from pathlib import Path

    from gpuwaste.core.clock import SystemClock
    from gpuwaste.jobs.importers.bulk_import import import_source
    from gpuwaste.jobs.importers.history_store import HistoryStore
    from gpuwaste.models.job_source import load_store

    with tempfile.TemporaryDirectory(prefix="gpuwaste-history-") as folder:
        path = Path(folder) / "history.duckdb"
        with closing(HistoryStore.open(path, SystemClock())) as store:
            result = import_source(store, path, pages)
        found = load_store(path, cluster)
    bad = f", {result.bad} rows of it could not be read" if result.bad else ""
    unread = (f"{result.bad} rows of {file.name} could not be read",) if result.bad else ()
    return replace(found, text=f"{file.name}{bad}", unread=unread)


def add_loads(parser: Any) -> None:
    """Add --generate and --step."""
    parser.add_argument(
        "--generate",
        metavar="NAME[:KEY=VALUE,...]",
        help="simulate a generated load instead of a history (gpuwaste simulate generate lists them)",
    )
    add_steps(parser)


def add_steps(parser: Any) -> None:
    """Add --step."""
    parser.add_argument(
        "--step",
        action="append",
        default=[],
        metavar="NAME=VALUE[,KEY=VALUE...]",
        help="change the jobs first: stretch=1.2, thin=0.8, repeat=2, burst=100,at=0.5 (repeatable, in this order)",
    )


def load_of(options: argparse.Namespace, config: "Config", seed: int = 0) -> "JobSource":
    """Read or draw the jobs, with a seed that is higher by `seed`. Raises as source_of, UsageError for wrong words."""
    if options.generate is None:
        return source_of(options, config, energy=True)
    from gpuwaste.sim.generated_load import generator_parameters
    from gpuwaste.sim.parameters import read_named

    return drawn_source(read_named(options.generate, generator_parameters(), "--generate").later(seed), options, config)


def drawn_source(chosen: "NamedParameters", options: argparse.Namespace, config: "Config") -> "JobSource":
    """Draw the jobs, from the history of the options where the generator needs one.

    Raises UsageError where a history is named that is not drawn from, and as source_of does.
    """
    from gpuwaste.models.job_source import JobSource
    from gpuwaste.sim.generated_load import GENERATORS, JobLog, generated

    log = None
    if GENERATORS[chosen.name].NEEDS_LOG or any(getattr(options, name) is not None for name in _SOURCES):
        source = source_of(options, config)
        log = JobLog(source.table, source.processors, source.text)
    load = generated(chosen, log)
    text = chosen.text() if log is None else f"{chosen.text()} of {log.text}"
    return JobSource(load.table(), chosen.name, text, load.processors)


def stepped(table: "JobTable", options: argparse.Namespace, seed: int = 0) -> "tuple[JobTable, tuple[str, ...]]":
    """Return the jobs after the steps, and the parsed steps; their seeds are higher by `seed`.

    Raises UsageError, NoDataError.
    """
    if not options.step:
        return table, ()
    from gpuwaste.sim.time_travel import read_steps, travelled

    steps = [step.later(seed) for step in read_steps(options.step)]
    return travelled(table, steps), tuple(step.text() for step in steps)


def need_sim(error: ModuleNotFoundError) -> GpuwasteError:
    """Return the error for a host without the simulator's libraries."""
    return GpuwasteError(
        f"simulate: no module {error.name}: install gpuwaste with its extra [sim], or the package gpuwaste-sim"
    )


def add_strict(parser: Any) -> None:
    """Add --strict."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse a history with rows or jobs that cannot be simulated (default: leave them out and count them)",
    )


def check_strict(document: "SimulationDocument", options: argparse.Namespace) -> None:
    """Raise ParseError with --strict where anything was left out."""
    if not options.strict:
        return
    from gpuwaste.sim.document import left_out_words

    found = "; ".join(left_out_words(document))
    if found:
        raise ParseError(f"--strict: {found}: correct the history, or simulate without --strict")
