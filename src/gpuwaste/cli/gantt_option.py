"""`gpuwaste simulate run --gantt`: which jobs held which GPUs in a window, for --html, --save and --json."""

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.core.errors import NoDataError, UsageError

if TYPE_CHECKING:
    from gpuwaste.sim.counterfactual import Counterfactual
    from gpuwaste.sim.trace import Ints

DEEPEST: Final = "deepest"
NONE: Final = "none"


def add_gantt(parser: Any) -> None:
    """Add --gantt."""
    parser.add_argument(
        "--gantt",
        metavar="START,END",
        help="with --scheduler slurm: chart of the jobs on each GPU in this window, deepest for the day with the "
        "longest queue, none for no chart (default: deepest with --html and --save, otherwise none)",
    )


def check_gantt(options: argparse.Namespace, schedulers: tuple[str, ...]) -> None:
    """Raise UsageError for an invalid window, and for one with schedulers that place no jobs on nodes."""
    from gpuwaste.sim.simulation import any_counts

    if options.gantt in {None, NONE}:
        return
    _window(options.gantt)
    if all(any_counts((name,)) for name in schedulers):
        raise UsageError(
            f"--gantt: --scheduler {schedulers[0]} counts processors and places no job on a node: give --scheduler "
            "slurm and --machine FILE or --live"
        )


def with_chart(found: "Counterfactual", options: argparse.Namespace, past: "Ints | None") -> "Counterfactual":
    """Return the answer with the requested Gantt charts; none after Ctrl-C or for a window without jobs."""
    wanted = options.gantt or (DEEPEST if options.html or options.save else NONE)
    if wanted == NONE or found.document.stopped:
        return found
    from gpuwaste.sim.gantt import with_gantts

    try:
        return with_gantts(found, _window(wanted), past)
    except KeyboardInterrupt:
        sys.stderr.write("gpuwaste: interrupted: the answer has no Gantt chart\n")
    except NoDataError as error:  # found out after the simulation, which is worth more
        sys.stderr.write(f"gpuwaste: {error}: no Gantt chart\n")
    return found


def _window(text: str) -> tuple[int, int] | None:
    """Return the window, None for the deepest queue's day. Raises UsageError."""
    from gpuwaste.cli.time_options import parse_time

    if text == DEEPEST:
        return None
    first, given, last = text.partition(",")
    if not given:
        raise UsageError(
            f"--gantt {text[:40]!r}: expected START,END such as 2027-01-31T08:00,2027-01-31T20:00, deepest, or none"
        )
    window = parse_time(first), parse_time(last)
    if window[0] >= window[1]:
        raise UsageError(f"--gantt {text[:60]!r}: the first time is not before the second")
    return window
