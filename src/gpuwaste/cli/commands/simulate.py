"""Simulate schedulers on a history of jobs: waits, slowdown and utilization under each of them."""

import argparse

from gpuwaste.cli.machine import add_machine
from gpuwaste.cli.options import add, add_config, add_window, config_of
from gpuwaste.cli.real_engine import add_engine
from gpuwaste.cli.sources import add_sources
from gpuwaste.cli.words import path_word, size_word

HELP = "what another scheduler would have done with a history of jobs"
EXAMPLES = (
    ("gpuwaste simulate --swf log.swf.gz --scheduler fcfs,easy,conservative", "What backfill gives on a public log."),
    ("gpuwaste simulate --live --write-machine site.toml", "Describe this cluster in a file, to change and simulate."),
    (
        "gpuwaste simulate --live -S now-2days -E now-1days --engine slurmctld --runs 5 -o runs",
        "The same jobs five times on a real slurmctld with this cluster's configuration.",
    ),
    ("gpuwaste simulate -S now-30days --walltime truth", "EASY on the site's last month, with exact time limits."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_sources(parser)
    add_window(parser, None, "jobs submitted from then on", shown="all")
    add_machine(parser)
    add(parser, "seed", "for failures of nodes", default=1)
    parser.add_argument("--first", type=size_word, metavar="N", help="only the first N jobs")
    parser.add_argument(
        "--scheduler", default="easy", metavar="NAMES", help="fcfs, sjf, easy, conservative (default: easy)"
    )
    parser.add_argument(
        "--walltime",
        choices=("user", "truth", "recent"),
        default="user",
        help="what schedulers plan with: the limit, what it ran, or its user's last two jobs (default: user)",
    )
    add_engine(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=path_word,
        metavar="FILE",
        help="write each job's starts there, as CSV; with --engine: the directory of its runs",
    )
    add(parser, "json")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Simulate and print."""
    from gpuwaste.cli.simulation import simulate_and_tell

    return simulate_and_tell(options, config_of(options))
