"""What one simulation is made of: jobs after their steps, the machine, what is believed of walltimes."""

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuwaste.cli.loads import load_of, stepped
from gpuwaste.cli.machine import cluster_of, size_of, with_drawn
from gpuwaste.cli.time_options import parse_time
from gpuwaste.cli.whatif import past_of
from gpuwaste.core.errors import NoDataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpuwaste.core.config import Config
    from gpuwaste.jobs.history.table import JobTable
    from gpuwaste.models.job_source import JobSource
    from gpuwaste.sim.simulation import Machine
    from gpuwaste.sim.trace import Ints
    from gpuwaste.slurm.site.cluster_model import ClusterModel


@dataclass(frozen=True, slots=True)
class Read:
    """What is read once, whatever the seed: the history, None where it is drawn; the machine, None for a count."""

    history: "JobSource | None"
    cluster: "ClusterModel | None"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The jobs of `table` are those at `places` of the source's table; `steps` what was done to them, in words."""

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
    """Return what is simulated, with each seed of the options higher by `seed`, and what was read for it.

    `read` is what an earlier call read. Raises GpuwasteError; NoDataError for nothing to simulate.
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
