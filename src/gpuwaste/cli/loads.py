"""The jobs that are simulated: a history, or what a generator draws, after the steps of time travel.

With --strict, what cannot be simulated is refused, not left out.
"""

import argparse
from typing import TYPE_CHECKING

from gpuwaste.cli.sources import source_of
from gpuwaste.core.errors import GpuwasteError, ParseError

if TYPE_CHECKING:
    from gpuwaste.core.config import Config
    from gpuwaste.jobs.history.table import JobTable
    from gpuwaste.models.job_source import JobSource
    from gpuwaste.sim.document import SimulationDocument
    from gpuwaste.sim.parameters import NamedParameters

_SOURCES = ("store", "swf", "sacct", "csv")


def add_loads(parser: argparse.ArgumentParser) -> None:
    """Add --generate and --step."""
    parser.add_argument(
        "--generate",
        metavar="NAME[:KEY=VALUE,...]",
        help="simulate a generated load instead of a history (gpuwaste simulate generate lists them)",
    )
    add_steps(parser)


def add_steps(parser: argparse.ArgumentParser) -> None:
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
    from gpuwaste.sim.load import generator_parameters
    from gpuwaste.sim.parameters import read_named

    return drawn_source(read_named(options.generate, generator_parameters(), "--generate").later(seed), options, config)


def drawn_source(chosen: "NamedParameters", options: argparse.Namespace, config: "Config") -> "JobSource":
    """Draw the jobs, from the history that the options name where the generator needs one.

    Raises UsageError where a history is named that is not drawn from, and as source_of does.
    """
    from gpuwaste.models.job_source import JobSource
    from gpuwaste.sim.load import GENERATORS, JobLog, generated

    log = None
    if GENERATORS[chosen.name].NEEDS_LOG or any(getattr(options, name) is not None for name in _SOURCES):
        source = source_of(options, config)
        log = JobLog(source.table, source.processors, source.text)
    load = generated(chosen, log)
    text = chosen.text() if log is None else f"{chosen.text()} of {log.text}"
    return JobSource(load.table(), chosen.name, text, load.processors)


def stepped(table: "JobTable", options: argparse.Namespace, seed: int = 0) -> "tuple[JobTable, tuple[str, ...]]":
    """Return the jobs after the steps, and the steps as they were understood; their seeds are higher by `seed`.

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


def add_strict(parser: argparse.ArgumentParser) -> None:
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
