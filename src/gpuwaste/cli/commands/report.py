"""Report what a user, an account or a cluster did with its GPUs in a window of time."""

import argparse
import sys

from gpuwaste.cli.options import add, add_config, add_formats, add_window, config_of, emit, typed, wasted_share

HELP = "GPU use and waste of a user, an account or a cluster"
EXAMPLES = (
    ("gpuwaste report", "Your last seven days and today (UTC days)."),
    ("gpuwaste report -A physics -S now-30days --csv", "An account's month, for a spreadsheet."),
    (
        "gpuwaste report -a -S now-30days --table users --csv",
        "Each user's GPU-time, energy and cost, for a spreadsheet.",
    ),
    ("gpuwaste report -M all --table clusters --csv", "Energy and cost of each cluster of the hub."),
    ("gpuwaste report --allusers --fail-above 20", "Everybody; exit code 4 if more than 20 % is wasted."),
    ("gpuwaste report -u alice -M all", "A user's jobs in all clusters of the hub, with a row for each cluster."),
)
CLUSTERS = "several separated by commas, or all; jobs of all their users, with -u or -A of these"
_TEXT_ROWS = 40
_TABLES = ("jobs", "users", "accounts", "clusters", "days")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    whom = parser.add_mutually_exclusive_group()
    add(whom, "user", shown="yours")
    add(whom, "accounts")
    add(whom, "allusers")
    add(parser, "clusters", CLUSTERS, shown="every cluster of the hub")
    add_window(parser, None, shown="the UTC day 7 days ago")
    parser.add_argument(
        "--table", choices=_TABLES, default=_TABLES[0], help=f"rows of --csv and --parsable (default: {_TABLES[0]})"
    )
    parser.add_argument("--energy", action="store_true", help="print energy and cost in detail")
    add_formats(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub and print its answer."""
    from functools import partial

    from gpuwaste.cli.hub_access import LONG_PATIENCE_S, ask_hub
    from gpuwaste.cli.time_options import query_of
    from gpuwaste.core.errors import NoDataError
    from gpuwaste.ledger.reports.report_text import report_text
    from gpuwaste.ledger.reports.report_types import ReportDocument

    window = query_of(options.starttime, options.endtime)
    every_job = options.form and options.table == _TABLES[0]
    query = scope_of(options) | window | ({} if every_job else {"limit": _TEXT_ROWS})
    raw = ask_hub(config_of(options), "/v1/report", query, LONG_PATIENCE_S)
    document = typed(raw, ReportDocument, printed=options.form is None)
    if not document.job_count and not options.form:
        raise NoDataError("no GPU jobs found in this time: try another -S, -E or -u")
    if every_job and document.jobs_left_out:
        left_out = document.jobs_left_out
        sys.stderr.write(f"gpuwaste: {left_out} jobs with less waste are not in the table: ask for a shorter time\n")
    wasted = wasted_share(document.totals)
    return emit(
        raw, document, options, partial(report_text, energy=options.energy), empty=not document.job_count, wasted=wasted
    )


def scope_of(options: argparse.Namespace) -> dict[str, str | int]:
    """Return the hub's parameter for the jobs of the report. Raises UsageError."""
    import os

    from gpuwaste.core.errors import UsageError
    from gpuwaste.core.groups import user_name

    clusters = {} if options.clusters is None else {"cluster": options.clusters}
    if options.accounts is not None:
        return {"account": options.accounts} | clusters
    if options.user is not None:
        return {"user": options.user} | clusters
    if options.allusers or clusters:
        return clusters or {"cluster": "1"}
    if name := user_name(os.getuid()):
        return {"user": name}
    raise UsageError(f"uid {os.getuid()} has no name on this host: give a user with -u")
