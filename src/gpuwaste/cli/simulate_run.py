"""What `gpuwaste simulate run` and `what-if` do: jobs, machine and walltimes of the options, and the answer."""

import argparse
import csv
import io
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpuwaste.cli.gantt_option import check_gantt, with_chart
from gpuwaste.cli.job_sources import check_strict, load_of, need_sim, stepped
from gpuwaste.cli.kept_simulation import comparison, keep, kept_words, view_of, write_pages
from gpuwaste.cli.options import terminal_look
from gpuwaste.cli.real_engine import check_engine, one_node, play_and_tell
from gpuwaste.cli.seeds import check_seeds, with_other_seeds
from gpuwaste.cli.simulate_whatif import past_of, refused_by, resource_of, wanted_of, with_what_ifs
from gpuwaste.cli.simulated_machine import cluster_of, size_of, with_drawn, write_machine
from gpuwaste.cli.time_options import parse_time
from gpuwaste.cli.words import listed
from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from gpuwaste.jobs.history.job_table import JobTable
    from gpuwaste.models.job_source import JobSource
    from gpuwaste.sim.counterfactual import Counterfactual
    from gpuwaste.sim.difference import Run
    from gpuwaste.sim.schedule_metrics import Placed
    from gpuwaste.sim.simulation import Machine
    from gpuwaste.sim.trace import Ints, Trace
    from gpuwaste.slurm.site.cluster_model import ClusterModel

EXIT_INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Read:
    """What is read once for all seeds: the history, None where it is drawn; the machine, None for a count."""

    history: "JobSource | None"
    cluster: "ClusterModel | None"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The jobs of `table` are those at `places` of the source's table; `steps` the changes made to them, in words."""

    source: "JobSource"
    table: "JobTable"
    places: "NDArray[np.intp]"
    steps: tuple[str, ...]
    cluster: "ClusterModel | None"
    machine: "Machine"
    past: "Ints | None"


def inputs_of(
    options: argparse.Namespace, config: "Config", resource: str, read: Read | None = None, seed: int = 0
) -> tuple[Inputs, Read]:
    """Return the inputs of the simulation, with each seed of the options higher by `seed`, and what was read for it.

    `read` is from an earlier call. Raises GpuwasteError; NoDataError for nothing to simulate.
    """
    import numpy as np

    from gpuwaste.sim.simulation import machine_of

    source = load_of(options, config, seed) if read is None or read.history is None else read.history
    history = source if options.generate is None else None
    places = _window(source.table, options)
    table, steps = stepped(source.table.take(places), options, seed)
    if steps:
        source, places = replace(source, table=table), np.arange(len(table))
    since = int(table.submit.min()) if len(table) else None
    model = cluster_of(options, config, since) if read is None else read.cluster
    if model is None:
        sized_by = "the log's header" if options.generate is None else "the generator"
        cluster, machine = None, machine_of(table, options.processors, source.processors, resource, sized_by)
    else:
        cluster = with_drawn(model, options.seed + seed, table)
        machine = size_of(cluster, options, resource)
    past = past_of(options, config, source.table, places)
    return Inputs(source, table, places, steps, cluster, machine, past), Read(history, model)


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


def simulate_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Simulate and print tables, or JSON. Raises GpuwasteError; NoDataError for nothing to simulate."""
    if options.write_machine is not None:
        sys.stdout.write(write_machine(options, config))
        return 0
    check_engine(options)
    check_seeds(options)
    try:
        from gpuwaste.sim.schedule_metrics import start_of
        from gpuwaste.sim.simulation import SCHEDULERS
    except ModuleNotFoundError as error:
        raise need_sim(error) from error
    wanted = wanted_of(options)
    chosen = _schedulers(options, wanted, SCHEDULERS)
    check_gantt(options, chosen)
    resource = resource_of(options, wanted)
    inputs, read = inputs_of(options, config, resource)
    source, table, past = inputs.source, inputs.table, inputs.past
    if options.engine is not None:
        cluster = inputs.cluster or one_node(inputs.machine.processors)
        return play_and_tell(options, table, source.text, cluster)

    def other_seed(seed: int) -> "Counterfactual":
        other, _ = inputs_of(options, config, resource, read, seed)
        return _simulated(other, options, config, chosen, wanted)[0]

    found, trace, plays = _simulated(inputs, options, config, chosen, wanted)
    found = with_other_seeds(found, options, read, other_seed)
    found = with_chart(found, options, past)
    found = _proposing(found, options)
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


def _proposing(found: "Counterfactual", options: argparse.Namespace) -> "Counterfactual":
    """Return the answer with the change that it proposes, where that is requested."""
    from dataclasses import replace

    from gpuwaste.sim.counterfactual import with_proposal

    if not options.propose:
        return found
    document = with_proposal(found.document)
    if document.proposal is None:
        sys.stderr.write("no change is proposed: none shortens the mean wait with 95 % confidence\n")
    return replace(found, document=document)


def _simulated(
    inputs: "Inputs",
    options: argparse.Namespace,
    config: Config,
    chosen: "Sequence[str]",
    wanted: "Sequence[tuple[str, str]]",
) -> "tuple[Counterfactual, Trace, dict[str, Ints | Placed]]":
    """Return the answer with every change, the jobs of the base, and the result of each scheduler."""
    from msgspec.structs import replace

    from gpuwaste.sim.simulation import simulate
    from gpuwaste.sim.whatif import WhatIfCase

    source, table, resource = inputs.source, inputs.table, resource_of(options, wanted)
    document, trace, plays = simulate(
        table,
        source.text,
        inputs.machine,
        chosen,
        walltime=options.walltime,
        first=options.first,
        resource=resource,
        past=inputs.past,
        steps=inputs.steps,
        cluster=inputs.cluster,
    )
    document = replace(document, unread=list(source.unread))
    check_strict(document, options)
    refused = refused_by(options, config, source, inputs.places)
    size, nodes = inputs.machine.processors, _nodes_of(inputs.cluster, plays)
    case = WhatIfCase(table, trace, size, resource, source.table, inputs.places, refused, *nodes)
    asked = () if document.stopped else wanted
    return with_what_ifs(document, case, plays, asked, inputs.past, some=options.propose), trace, plays


def _schedulers(
    options: argparse.Namespace, wanted: "Sequence[tuple[str, str]]", known: "Mapping[str, object]"
) -> tuple[str, ...]:
    """Return the names of the schedulers, each of which uses what the what-ifs change. Raises UsageError."""
    from gpuwaste.sim.counterfactual import check_schedulers

    chosen = tuple(dict.fromkeys(listed(options.scheduler)))
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


def compare_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Print the difference of two saved simulations. Raises as `comparison`, GpuwasteError without the simulator."""
    from msgspec import to_builtins

    from gpuwaste.show.machine_formats import to_json
    from gpuwaste.show.terminal_cells import harmless_document
    from gpuwaste.sim.difference_text import change_text, difference_text

    found, resource = comparison(options.before, options.after, config)
    if options.json:
        sys.stdout.write(to_json(to_builtins(found)))
        return 0
    look, shown = terminal_look(), harmless_document(found)
    lines = [*difference_text(shown, resource, look), *change_text(shown, resource, look)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _printed(document: object, *, as_json: bool) -> str:
    from msgspec import to_builtins

    from gpuwaste.show.machine_formats import to_json
    from gpuwaste.show.terminal_cells import harmless_document
    from gpuwaste.sim.document import SimulationDocument
    from gpuwaste.sim.simulation_text import simulation_text

    if as_json:
        return to_json(to_builtins(document))
    shown = harmless_document(document)
    return simulation_text(shown, terminal_look()) if isinstance(shown, SimulationDocument) else ""


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
