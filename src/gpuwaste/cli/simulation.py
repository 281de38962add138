"""What `gpuwaste simulate` does: the jobs that the options name, the simulation, the answer."""

import argparse
import csv
import io
import sys
from typing import TYPE_CHECKING

from gpuwaste.cli.machine import cluster_for, processors_of, write_machine
from gpuwaste.cli.options import colour_wanted
from gpuwaste.cli.real_engine import check_engine, one_node, play_and_tell
from gpuwaste.cli.sources import source_of
from gpuwaste.cli.time_options import parse_time
from gpuwaste.cli.words import listed
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, StoreError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuwaste.history.table import JobTable
    from gpuwaste.sim.trace import Ints, Trace


def simulate_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Simulate and print tables, or JSON. Raises GpuwasteError; NoDataError for nothing to simulate."""
    if options.write_machine is not None:
        sys.stdout.write(write_machine(options, config))
        return 0
    check_engine(options)
    try:
        from gpuwaste.sim.simulation import all_schedulers, machine_of, simulate
    except ModuleNotFoundError as error:
        raise GpuwasteError(
            f"simulate: no module {error.name}: install gpuwaste with its extra [sim], or the package gpuwaste-sim"
        ) from error
    chosen = tuple(dict.fromkeys(listed(options.scheduler)))
    unknown = [name for name in chosen if name not in all_schedulers()]
    if unknown or not chosen:
        raise UsageError(f"--scheduler {options.scheduler[:40]!r}: schedulers are {', '.join(all_schedulers())}")
    source = source_of(options, config)
    table = _window(source.table, options)
    cluster = cluster_for(options, config, table)
    if cluster is None:
        machine = machine_of(table, options.processors, source.processors)
    else:
        machine = processors_of(cluster, options)
    if options.engine is not None:
        return play_and_tell(options, table, source.text, cluster or one_node(machine.processors))
    document, trace, starts = simulate(
        table, source.text, machine, chosen, walltime=options.walltime, first=options.first
    )
    if options.output is not None:
        _write(options.output, table, trace, starts)
    sys.stdout.write(_printed(document, as_json=options.json))
    return 0


def _window(table: "JobTable", options: argparse.Namespace) -> "JobTable":
    import numpy as np

    first = None if options.starttime is None else parse_time(options.starttime)
    last = None if options.endtime == "now" else parse_time(options.endtime)
    if first is None and last is None:
        return table
    rows = np.flatnonzero((table.submit >= (first or 0)) & (table.submit < (last or np.inf)))
    if not len(rows):
        raise NoDataError(f"none of {len(table)} jobs was submitted from {options.starttime} to {options.endtime}")
    return table.take(rows)


def _printed(document: object, *, as_json: bool) -> str:
    from msgspec import to_builtins

    from gpuwaste.report.cells import harmless_document
    from gpuwaste.report.layout import Look
    from gpuwaste.report.machine import to_json
    from gpuwaste.report.simulation_text import simulation_text
    from gpuwaste.sim.document import SimulationDocument

    if as_json:
        return to_json(to_builtins(document))
    shown = harmless_document(document)
    return simulation_text(shown, Look(colour=colour_wanted())) if isinstance(shown, SimulationDocument) else ""


def _write(path: "Path", table: "JobTable", trace: "Trace", starts: "dict[str, Ints]") -> None:
    """Write a row for each simulated job: id, submission, size, run time, limit, and its start by scheduler."""
    from gpuwaste.core.files import write_whole

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["job_id", "submit", "processors", "run_s", "limit_s", *(f"{name}_start" for name in starts)])
    columns = [table.job_id[trace.row], trace.submit, trace.procs, trace.run_s, trace.limit_s, *starts.values()]
    rows.writerows(zip(*(column.tolist() for column in columns), strict=True))
    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
