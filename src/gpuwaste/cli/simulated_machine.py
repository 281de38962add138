"""The machine that a simulation runs on: from the file of --machine, or from Slurm with --live."""

import argparse
from typing import TYPE_CHECKING, Any

from gpuwaste.cli.words import path_word, size_word
from gpuwaste.core.errors import StoreError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuwaste.core.config import Config
    from gpuwaste.jobs.history.job_table import JobTable
    from gpuwaste.sim.simulation import Machine
    from gpuwaste.slurm.site.cluster_model import ClusterModel


def add_machine(parser: Any) -> None:
    """Add --machine, --live and --processors, which exclude each other."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--machine", type=path_word, metavar="FILE", help="nodes and partitions: TOML, slurm.conf, or its directory"
    )
    group.add_argument("--live", action="store_true", help="nodes, partitions, QOS and accounts as Slurm has them now")
    group.add_argument(
        "--processors",
        type=size_word,
        metavar="N",
        help="size of the machine, in what --resource counts (default: the log's, or the most held)",
    )


def add_write_machine(parser: Any) -> None:
    """Add --write-machine."""
    parser.add_argument(
        "--write-machine",
        type=path_word,
        metavar="FILE",
        help="with --machine or --live: write the machine there as TOML and simulate nothing",
    )


def cluster_of(options: argparse.Namespace, config: "Config", since: int | None) -> "ClusterModel | None":
    """Return the cluster of --machine or --live, None where neither is given; `since` as of SlurmClient.site.

    Raises ConfigError, SlurmError, ParseError.
    """
    if options.machine is not None:
        from gpuwaste.slurm.site.machine_file import read_machine

        return read_machine(options.machine)
    if not options.live:
        return None
    from gpuwaste.slurm.clients.client_choice import slurm_client

    return slurm_client(config).site(since)


def with_drawn(cluster: "ClusterModel", seed: int, table: "JobTable") -> "ClusterModel":
    """Return a cluster with the outages of these jobs' time, drawn where the file has a rate of failures.

    Failures are drawn from the first submission on for twice the time to the last end. Raises ConfigError.
    """
    from gpuwaste.sim.drawn_outages import with_failures

    if not len(table):
        return cluster
    first, last = int(table.submit.min()), max(int(table.submit.max()), int(table.end.max()))
    return with_failures(cluster, seed, first, first + 2 * max(1, last - first))


def size_of(cluster: "ClusterModel", options: argparse.Namespace, resource: str) -> "Machine":
    """Return the CPUs, or the GPUs, of the nodes that are not down: for schedulers that count. Raises UsageError."""
    from gpuwaste.sim.simulation import Machine
    from gpuwaste.sim.trace import GPUS

    source = f"the machine of {options.machine.name}" if options.machine is not None else "the live cluster"
    if all(node.down for node in cluster.nodes):
        raise UsageError(f"{source}: every node is down: no job can run")
    size = cluster.size(gpus=resource == GPUS)
    if not size:
        raise UsageError(f"{source}: its nodes have no GPUs: leave out --resource gpus")
    return Machine(size, source)


def write_machine(options: argparse.Namespace, config: "Config") -> str:
    """Write the machine as TOML, with the outages since -S where it is live; returns what was written, in a line.

    Raises UsageError without a machine, StoreError, and as cluster_of.
    """
    from gpuwaste.cli.time_options import parse_time

    since = None if options.starttime is None else parse_time(options.starttime)
    found = cluster_of(options, config, None if since is None else int(since))
    if found is None:
        raise UsageError("--write-machine needs a machine: give --live or --machine FILE")
    from gpuwaste.core.files import write_whole
    from gpuwaste.slurm.site.machine_toml import to_toml

    path: Path = options.write_machine
    try:
        write_whole(path, to_toml(found).encode())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    counts = f"partitions: {len(found.partitions)}, QOS: {len(found.qos)}, associations: {len(found.associations)}"
    return f"{path}: {len(found.nodes)} nodes, {found.cpus} CPUs, {found.gpus} GPUs; {counts}\n"
