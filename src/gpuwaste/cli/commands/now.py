"""GPUs held and idle now, silent nodes, the queue; with --hours the running jobs by what they wasted since then.

The figures are as old as the reports of the agents: the ages are printed. Users see the counts of all jobs, and the
idle GPUs and silent nodes of their own jobs.
"""

import argparse
import time

from gpuwaste.cli.options import add, config_of, emit, typed, wasted_share
from gpuwaste.cli.resource_commands import resource_commands
from gpuwaste.core.units import HOUR_S

HELP = "GPUs held and idle now, silent nodes, the queue"
EXAMPLES = (
    ("gpuwaste now", "Who holds idle GPUs now, and since when; which nodes report nothing; the queue."),
    ("gpuwaste now --hours 4", "Running jobs by what they wasted in the last four hours."),
    ("gpuwaste now --limit 1000 --csv", "The jobs with idle GPUs for a spreadsheet."),
)
_LONGEST_H = 24 * 365


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    since = parser.add_mutually_exclusive_group()
    since.add_argument("--hours", type=int, metavar="N", help="running jobs by their waste in the last N hours")
    add(since, "starttime", "running jobs by their waste since then")
    resource_commands()["now"].arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub and print its answer."""
    if options.hours is None and options.starttime is None:
        return resource_commands()["now"].run(options)
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.core.errors import NoDataError
    from gpuwaste.ledger.reports.report_text import top_text
    from gpuwaste.ledger.reports.report_types import TopDocument

    raw = ask_hub(config_of(options), "/v1/top", {"since": _since(options)})
    document = typed(raw, TopDocument, printed=options.form is None)
    if not document.jobs and not options.form:
        raise NoDataError("no GPU job is running")
    return emit(raw, document, options, top_text, empty=not document.jobs, wasted=wasted_share(document.totals))


def _since(options: argparse.Namespace) -> int:
    """Return the start of the waste in UTC seconds. Raises UsageError."""
    from gpuwaste.cli.time_options import parse_time
    from gpuwaste.core.errors import UsageError

    if options.starttime is not None:
        return parse_time(options.starttime)
    if not 0 < options.hours <= _LONGEST_H:
        raise UsageError(f"--hours {options.hours}: expected 1 to {_LONGEST_H}")
    hours: int = options.hours
    return int(time.time()) - hours * HOUR_S
