"""`tools/cluster up|down|status`: a Slurm cluster on loopback from the shell."""

import argparse
import shutil
import sys
from collections.abc import Sequence

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster import LoopbackCluster, Variant

DEFAULT_DIRECTORY = "/tmp/gpuwaste-cluster"  # noqa: S108 - shared on purpose, so that down and status find it


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools/cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    texts = {"up": "start a cluster and leave it running", "down": "end it", "status": "print its daemons and nodes"}
    for name, text in texts.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--dir", default=DEFAULT_DIRECTORY, help="its private directory (default: %(default)s)")
        if name == "up":
            command.add_argument(
                "--variant", action="append", default=[], metavar="KEY[=VALUE]", help="constrain_devices, shards=4 ..."
            )
        if name == "down":
            command.add_argument("--remove", action="store_true", help="remove the directory too")
    return parser


def _up(directory: str, words: list[str]) -> int:
    cluster = LoopbackCluster(directory, Variant.parse(words))
    cluster.start()
    cluster.detach()
    print(f"export SLURM_CONF={cluster.layout.slurm_conf}")
    return 0


def _down(directory: str, *, remove: bool) -> int:
    LoopbackCluster.attach(directory).stop()
    if remove:
        shutil.rmtree(directory)
    return 0


def _status(directory: str) -> int:
    cluster = LoopbackCluster.attach(directory)
    ports = cluster.layout.ports
    print(f"slurm.conf {cluster.layout.slurm_conf}")
    print(f"ports      slurmctld {ports[0]}, slurmdbd {ports[1]}, slurmrestd {ports[2]}")
    for process in cluster.processes.values():
        print(f"{process.name:<14} {f'pid {process.pid}' if process.alive() else 'not running'}")
    up = bool(cluster.processes) and all(process.alive() for process in cluster.processes.values())
    states = cluster.node_states() if up else {}
    for node in cluster.nodes.values():
        print(f"{node.name:<14} {states.get(node.name, 'down')}  {node.address}:{node.port}  minors {node.minors}")
    return 0 if up else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when done (status: all daemons run), 1 with one line on standard error otherwise."""
    options = _parser().parse_args(argv)
    try:
        if options.command == "up":
            return _up(options.dir, options.variant)
        if options.command == "down":
            return _down(options.dir, remove=options.remove)
        return _status(options.dir)
    except GpuwasteError as error:
        print(f"tools/cluster: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
