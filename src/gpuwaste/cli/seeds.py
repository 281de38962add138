"""`gpuwaste simulate run --seeds N`: the same simulation with other seeds, and figures over all of them."""

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.cli.words import number_word
from gpuwaste.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuwaste.cli.simulate_run import Read
    from gpuwaste.sim.counterfactual import Counterfactual

MOST: Final = 1000


def add_seeds(parser: Any) -> None:
    """Add --seeds."""
    parser.add_argument(
        "--seeds",
        type=_seeds_word,
        metavar="N",
        help="simulate with N consecutive seeds and print means with intervals over them",
    )


def check_seeds(options: argparse.Namespace) -> None:
    """Raise UsageError for --seeds with what has no seeds."""
    if options.seeds is not None and options.engine is not None:
        raise UsageError("--seeds: --engine slurmctld is not random: give --runs N for several runs")


def with_other_seeds(
    found: "Counterfactual",
    options: argparse.Namespace,
    read: "Read",
    simulated: "Callable[[int], Counterfactual]",
) -> "Counterfactual":
    """Return the answer with figures over --seeds; `simulated` returns that of a seed higher by its argument.

    Ctrl-C leaves the seeds that were simulated until then. Raises GpuwasteError.
    """
    from dataclasses import replace

    from msgspec.structs import replace as changed

    from gpuwaste.sim.intervals import with_seeds

    if options.seeds is None or found.document.stopped:
        return found
    random = drawn(options, read)
    wanted = options.seeds if random else 1
    documents = [found.document]
    try:
        while len(documents) < wanted and not (one := simulated(len(documents)).document).stopped:
            documents.append(changed(one, series=[]))
            _progress(len(documents), wanted)
    except KeyboardInterrupt:
        pass
    finally:
        _progress(0, wanted)
    document = with_seeds(documents, random)
    if len(documents) < wanted:
        words = f"Interrupted: {len(documents)} of {wanted} seeds were simulated."
        document = changed(document, stopped=words)
    return replace(found, document=document)


def drawn(options: argparse.Namespace, read: "Read") -> list[str]:
    """Return what the seeds draw, in words; nothing where the simulation is not random."""
    from gpuwaste.sim.generated_load import generator_parameters
    from gpuwaste.sim.parameters import read_named
    from gpuwaste.sim.time_travel import read_steps

    found = []
    if options.generate is not None:
        named = read_named(options.generate, generator_parameters(), "--generate")
        found += [f"the jobs of {named.name}"] if "seed" in named.values else []
    found += [f"the step {step.name}" for step in read_steps(options.step) if "seed" in step.values]
    if read.cluster is not None and read.cluster.failures is not None:
        found.append("failures of nodes")
    return found


def _progress(done: int, count: int) -> None:
    """Show how many seeds are done on a terminal; 0 removes the line."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{f'{done} of {count} seeds':<40}" if done else f"\r{'':<40}\r")
        sys.stderr.flush()


def _seeds_word(value: str) -> int:
    return number_word(value, 1, MOST)
