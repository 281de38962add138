"""Report who is wasting GPUs now: running jobs, over the last hour or more."""

import argparse
import time

from gpuwaste.cli.options import add, add_config, add_formats, config_of, emit, typed, wasted_share
from gpuwaste.core.units import HOUR_S

HELP = "who is wasting GPUs now"
EXAMPLES = (("gpuwaste top --hours 4", "Who wasted most in the last four hours."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    since = parser.add_mutually_exclusive_group()
    since.add_argument("--hours", type=int, default=1, metavar="N", help="look back N hours (default: 1)")
    add(since, "starttime", shown="an hour ago")
    add_formats(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub and print its answer."""
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.cli.time_options import parse_time
    from gpuwaste.core.errors import NoDataError, UsageError
    from gpuwaste.ledger.reports.report_text import top_text
    from gpuwaste.ledger.reports.report_types import TopDocument

    if not 0 < options.hours <= 24 * 365:
        raise UsageError(f"--hours {options.hours}: expected 1 to {24 * 365}")
    since = int(time.time()) - options.hours * HOUR_S
    if options.starttime is not None:
        since = parse_time(options.starttime)
    raw = ask_hub(config_of(options), "/v1/top", {"since": since})
    document = typed(raw, TopDocument, printed=options.form is None)
    if not document.jobs and not options.form:
        raise NoDataError("no GPU job is running")
    wasted = wasted_share(document.totals)
    return emit(raw, document, options, top_text, empty=not document.jobs, wasted=wasted)
