"""The options of commands that can run as a job of the site's Slurm (as_job.py)."""

import argparse

from gpuwaste.cli.options import add
from gpuwaste.cli.words import size_word


def add_as_job(parser: argparse.ArgumentParser, shared: str) -> None:
    """Add --as-job with what it needs; `shared` names what has to be on shared disk."""
    parser.add_argument("--as-job", action="store_true", help=f"run as a job of this Slurm cluster; {shared}")
    add_job_options(parser, "a job", 240)


def add_job_options(parser: argparse.ArgumentParser, of: str, minutes: int) -> None:
    """Add what sbatch is told of the job: partition, account, time limit."""
    parser.add_argument("--partition", default="", metavar="NAME", help="with --as-job: partition")
    add(parser, "accounts", "with --as-job, the account to charge")
    parser.add_argument(
        "--time",
        type=size_word,
        default=minutes,
        metavar="MINUTES",
        help=f"with --as-job: time limit of {of} (default: {minutes})",
    )
