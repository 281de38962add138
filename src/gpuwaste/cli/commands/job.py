"""Report one job, array or het job: each run with its GPUs, CPU and memory efficiency, and what to change."""

import argparse
import re

from gpuwaste.cli.options import add_config, add_formats, config_of, emit, wasted_share

HELP = "one job with its GPUs: ID as 7, 3_1 or 4+1"
_ID = re.compile(r"\d{1,10}(?:[_+]\d{1,10})?")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("id", metavar="ID", help="as Slurm prints it: 7, 3_1 (array task), 4+1 (het component)")
    add_formats(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Ask the hub and print its answer."""
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.core.errors import NoDataError, UsageError
    from gpuwaste.report.text import job_text

    if not _ID.fullmatch(options.id):
        raise UsageError(f"job {options.id[:40]!r}: expected 7, 3_1 or 4+1")
    try:
        document = ask_hub(config_of(options), f"/v1/jobs/{options.id}")
    except NoDataError:
        raise NoDataError(f"job {options.id}: no such job that you may read") from None
    return emit(
        document, options, job_text, empty=False, wasted=wasted_share(*(run["totals"] for run in document["runs"]))
    )
