"""Report what a user, an account or the whole cluster did with its GPUs in a window of time."""

import argparse
import os
import pwd
import sys
from datetime import datetime

from gpuwaste.cli.options import add_config, add_formats, config_of, emit, wasted_share

HELP = "GPU use and waste of a user, an account or the cluster"
EXAMPLES = (
    ("gpuwaste report", "Your last seven days."),
    ("gpuwaste report -A physics -S now-30days --csv", "An account's month, for a spreadsheet."),
    ("gpuwaste report --cluster --fail-over 20", "Everybody; exit code 4 where more than 20 % is wasted."),
)
_TEXT_ROWS = 40


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    whom = parser.add_mutually_exclusive_group()
    whom.add_argument("-u", "--user", metavar="U", help="jobs of this user (default: your own)")
    whom.add_argument("-A", "--account", metavar="A", help="jobs of this account")
    whom.add_argument("--cluster", action="store_true", help="jobs of everybody")
    parser.add_argument("-M", "--clusters", metavar="NAME", help="with --cluster: this cluster of the hub's alone")
    parser.add_argument("-S", "--starttime", default="now-7days", metavar="TIME", help="as sacct (default now-7days)")
    parser.add_argument("-E", "--endtime", default="now", metavar="TIME", help="as sacct (default now)")
    add_formats(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Ask the hub and print its answer."""
    from gpuwaste.cli.hub_access import LONG_PATIENCE_S, ask_hub
    from gpuwaste.cli.times import parse_time
    from gpuwaste.core.errors import NoDataError, UsageError
    from gpuwaste.report.text import report_text

    now = datetime.now()  # noqa: DTZ005 the caller's own zone is meant
    start, end = parse_time(options.starttime, now), parse_time(options.endtime, now)
    if start >= end:
        raise UsageError(f"-S {options.starttime} is not before -E {options.endtime}")
    query = scope_of(options) | {"start": start, "end": end} | ({} if options.form else {"limit": _TEXT_ROWS})
    document = ask_hub(config_of(options), "/v1/report", query, LONG_PATIENCE_S)
    if not document["job_count"] and not options.form:
        raise NoDataError("no GPU jobs in that time: another -S, -E or --user?")
    if options.form and document["jobs_left_out"]:
        left_out = document["jobs_left_out"]
        sys.stderr.write(f"gpuwaste: {left_out} jobs with less waste are not in the table: ask for a shorter time\n")
    return emit(
        document, options, report_text, empty=not document["job_count"], wasted=wasted_share(document["totals"])
    )


def scope_of(options: argparse.Namespace) -> dict[str, str | int]:
    """Return the hub's parameter for whom the report is."""
    if options.cluster:
        return {"cluster": options.clusters or "1"}
    if options.account is not None:
        return {"account": options.account}
    if options.user is not None:
        return {"user": options.user}
    try:
        return {"user": pwd.getpwuid(os.getuid()).pw_name}
    except KeyError:
        from gpuwaste.core.errors import UsageError

        raise UsageError(f"uid {os.getuid()} has no name on this host: say --user") from None
