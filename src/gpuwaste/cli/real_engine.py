"""What `gpuwaste simulate run --engine slurmctld` does: a trace on a real slurmctld, several times."""

import argparse
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from gpuwaste.cli.interrupts import Interrupted
from gpuwaste.cli.options import terminal_look
from gpuwaste.cli.words import number_word
from gpuwaste.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuwaste.jobs.history.job_table import JobTable
    from gpuwaste.sim.real.ensemble_document import EngineDocument
    from gpuwaste.slurm.site.cluster_model import ClusterModel

ENGINES: Final = ("slurmctld",)
_SIMULATED: Final = ("resource", "html", "save")
_MOST_RUNS: Final = 999
_MOST_SPEED: Final = 200
_DEFAULT_SPEED: Final = 20


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add --engine, --runs and --speed."""
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help="play the jobs on a real slurmctld with virtual nodes on this host; needs -o DIR",
    )
    parser.add_argument("--runs", type=_runs, metavar="N", help="with --engine: runs of the same jobs (default: 1)")
    parser.add_argument(
        "--speed",
        type=_speed,
        metavar="N",
        help=f"with --engine: simulated seconds per real second (default: {_DEFAULT_SPEED})",
    )


def check_engine(options: argparse.Namespace) -> None:
    """Raise UsageError for options that contradict each other."""
    if options.engine is None:
        if options.runs is not None or options.speed is not None:
            raise UsageError("--runs and --speed need --engine slurmctld")
        return
    if options.output is None:
        raise UsageError("--engine slurmctld needs -o DIR: the directory that keeps its runs")
    if options.output.exists() and not options.output.is_dir():
        raise UsageError(f"{options.output}: not a directory: --engine slurmctld keeps its runs in the directory of -o")
    simulated = [name for name in _SIMULATED if getattr(options, name)]
    if simulated:
        raise UsageError(f"--{simulated[0].replace('_', '-')}: only for the simulator: leave it out with --engine")
    if options.walltime != "user":
        raise UsageError(f"--walltime {options.walltime}: a real slurmctld plans with the users' limits: leave it out")


def play_and_tell(options: argparse.Namespace, table: "JobTable", text: str, cluster: "ClusterModel") -> int:
    """Play the runs that the directory lacks, print the results of all. Raises GpuwasteError."""
    from gpuwaste.sim.real.engine import EngineStudy, play_ensemble

    runs, speed = options.runs or 1, options.speed or _DEFAULT_SPEED
    study = EngineStudy(table, text, cluster, runs, speed, options.output, options.first)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        document = play_ensemble(study, _Progress(runs))
    except KeyboardInterrupt as stop:
        raise Interrupted(f"runs so far are in {options.output}: run the same command again to continue") from stop
    finally:
        signal.signal(signal.SIGTERM, before)
    sys.stdout.write(_printed(document, options.output, as_json=options.json))
    return 0


def one_node(processors: int) -> "ClusterModel":
    """Return a cluster of that many processors: one node that has them, in one partition without limits."""
    from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition

    node = Node("node1", processors, 1 << 40)
    settings = {"SelectTypeParameters": "CR_CPU"}
    return ClusterModel("processors", (node,), (Partition("all", ("node1",), default=True),), settings=settings)


class _Progress:
    """A line on a terminal: jobs that ended, and the time that is left at this rate."""

    def __init__(self, runs: int) -> None:
        self._runs, self._run, self._began = runs, 0, 0.0

    def __call__(self, run: int, submitted: int, ended: int, jobs: int) -> None:
        if not sys.stderr.isatty():
            return
        if run != self._run:
            self._run, self._began = run, time.monotonic()
        from gpuwaste.show.terminal_cells import short

        passed = time.monotonic() - self._began
        left = f", {short(passed * (jobs - ended) / ended)} left" if ended else ""
        sys.stderr.write(
            f"\rrun {run} of {self._runs}: {submitted} submitted, {ended} of {jobs} jobs ended{left}\x1b[K"
        )
        if ended == jobs:
            sys.stderr.write("\n")


def _printed(document: "EngineDocument", directory: "Path", *, as_json: bool) -> str:
    from msgspec import to_builtins

    from gpuwaste.show.machine_formats import to_json
    from gpuwaste.show.terminal_cells import harmless_document
    from gpuwaste.sim.simulation_text import engine_text

    if as_json:
        return to_json(to_builtins(document))
    return engine_text(harmless_document(document), str(directory), terminal_look())


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _runs(value: str) -> int:
    return number_word(value, 1, _MOST_RUNS)


def _speed(value: str) -> int:
    return number_word(value, 1, _MOST_SPEED)
