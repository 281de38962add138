"""What `gpuwaste simulate` does: the jobs that the options name, the simulation, the answer."""

import argparse
import csv
import io
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpuwaste.cli.kept_simulation import comparison, keep, kept_words, view_of, write_pages
from gpuwaste.cli.loads import load_of, need_sim, stepped
from gpuwaste.cli.machine import cluster_for, size_of, write_machine
from gpuwaste.cli.options import colour_wanted
from gpuwaste.cli.real_engine import check_engine, one_node, play_and_tell
from gpuwaste.cli.time_options import parse_time
from gpuwaste.cli.whatif import past_of, refused_by, resource_of, wanted_of, with_what_ifs
from gpuwaste.cli.words import listed
from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from gpuwaste.history.table import JobTable
    from gpuwaste.sim.cluster import ClusterModel
    from gpuwaste.sim.difference import Run
    from gpuwaste.sim.placed import Placed
    from gpuwaste.sim.trace import Ints, Trace

EXIT_INTERRUPTED: Final = 130


def simulate_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Simulate and print tables, or JSON. Raises GpuwasteError; NoDataError for nothing to simulate."""
    if options.write_machine is not None:
        sys.stdout.write(write_machine(options, config))
        return 0
    check_engine(options)
    try:
        import numpy as np

        from gpuwaste.sim.placed import start_of
        from gpuwaste.sim.simulation import machine_of, simulate
        from gpuwaste.sim.whatif import Case
    except ModuleNotFoundError as error:
        raise need_sim(error) from error
    if options.compare is not None:
        return _compared(options, config)
    wanted = wanted_of(options)
    chosen = _schedulers(options, wanted)
    resource = resource_of(options, wanted)
    source = load_of(options, config)
    places = _window(source.table, options)
    table, steps = stepped(source.table.take(places), options)
    if steps:
        source, places = replace(source, table=table), np.arange(len(table))
    cluster = cluster_for(options, config, table)
    if cluster is None:
        sized_by = "the log's header" if options.generate is None else "the generator"
        machine = machine_of(table, options.processors, source.processors, resource, sized_by)
    else:
        machine = size_of(cluster, options, resource)
    if options.engine is not None:
        return play_and_tell(options, table, source.text, cluster or one_node(machine.processors))
    past = past_of(options, config, source.table, places)
    document, trace, plays = simulate(
        table,
        source.text,
        machine,
        chosen,
        walltime=options.walltime,
        first=options.first,
        resource=resource,
        past=past,
        steps=steps,
        cluster=cluster,
    )
    refused = refused_by(options, config, source, places)
    case = Case(table, trace, machine.processors, resource, source.table, places, refused, *_nodes_of(cluster, plays))
    found = with_what_ifs(document, case, plays, () if document.stopped else wanted, past)
    if options.output is not None:
        _write(options.output, table, trace, {name: start_of(play) for name, play in plays.items()}, found.runs)
    view = view_of(found, source.cluster) if options.save or options.html else None
    if options.html is not None and view is not None:
        sys.stderr.write(f"{write_pages(options.html, view)}\n")
    sys.stdout.write(_printed(found.document, as_json=options.json))
    sys.stdout.flush()
    if options.save and view is not None:
        sys.stderr.write(kept_words(keep(found, table, view, config), view))
    return EXIT_INTERRUPTED if found.document.stopped else 0


def _schedulers(options: argparse.Namespace, wanted: "Sequence[tuple[str, str]]") -> tuple[str, ...]:
    """Return the names of the schedulers, each of which goes by what the what-ifs change. Raises UsageError."""
    from gpuwaste.sim.counterfactual import check_schedulers
    from gpuwaste.sim.simulation import all_schedulers

    known, chosen = all_schedulers(), tuple(dict.fromkeys(listed(options.scheduler)))
    if not chosen or not known.keys() >= set(chosen):
        raise UsageError(f"--scheduler {options.scheduler[:40]!r}: schedulers are {', '.join(known)}")
    check_schedulers(wanted, chosen)
    return chosen


def _nodes_of(
    cluster: "ClusterModel | None", plays: "Mapping[str, Ints | Placed]"
) -> "tuple[ClusterModel | None, bool]":
    """Return the cluster where a scheduler placed jobs on its nodes, and whether another one counted."""
    from gpuwaste.sim.simulation import any_counts

    on_nodes = not all(any_counts((name,)) for name in plays)
    return cluster if on_nodes else None, any_counts(tuple(plays))


def _compared(options: argparse.Namespace, config: Config) -> int:
    """Print the difference of two kept simulations."""
    from msgspec import to_builtins

    from gpuwaste.report.cells import harmless_document
    from gpuwaste.report.difference_text import difference_text
    from gpuwaste.report.layout import Look
    from gpuwaste.report.machine import to_json

    found, resource = comparison(options.compare, config)
    if options.json:
        sys.stdout.write(to_json(to_builtins(found)))
        return 0
    sys.stdout.write(
        "\n".join(difference_text(harmless_document(found), resource, Look(colour=colour_wanted()))) + "\n"
    )
    return 0


def _window(table: "JobTable", options: argparse.Namespace) -> "NDArray[np.intp]":
    """Return the places of the jobs that were submitted in the window. Raises NoDataError."""
    import numpy as np

    first = None if options.starttime is None else parse_time(options.starttime)
    last = None if options.endtime == "now" else parse_time(options.endtime)
    if first is None and last is None:
        return np.arange(len(table))
    rows = np.flatnonzero((table.submit >= (first or 0)) & (table.submit < (last or np.inf)))
    if not len(rows):
        raise NoDataError(f"none of {len(table)} jobs was submitted from {options.starttime} to {options.endtime}")
    return rows


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


def _write(
    path: "Path", table: "JobTable", trace: "Trace", starts: "dict[str, Ints]", runs: "Mapping[str, Run]"
) -> None:
    """Write a row for each simulated job: id, submission, size, run time, limit, and its start by scheduler.

    Each changed run adds its start, size and limit, empty where it has no such job.
    """
    from gpuwaste.core.files import write_whole

    changed = {name: run for name, run in runs.items() if name not in starts}
    more = dict(pair for name, run in changed.items() for pair in _columns(name, trace, run))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["job_id", "submit", "processors", "run_s", "limit_s", *(f"{name}_start" for name in starts), *more])
    columns = [table.job_id[trace.row], trace.submit, trace.procs, trace.run_s, trace.limit_s, *starts.values()]
    rows.writerows(zip(*(column.tolist() for column in columns), *more.values(), strict=True))
    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


def _columns(name: str, trace: "Trace", run: "Run") -> "Iterator[tuple[str, list[int | str]]]":
    """Yield the columns of a changed run, a cell for each job of the base."""
    place = {row: index for index, row in enumerate(run.trace.row.tolist())}
    found = [place.get(row) for row in trace.row.tolist()]
    for column, values in (("start", run.start), ("processors", run.trace.procs), ("limit_s", run.trace.limit_s)):
        known = values.tolist()
        yield f"{name} {column}", ["" if index is None else known[index] for index in found]
