"""The options that `gpuwaste simulate run` and `what-if` share."""

import argparse

from gpuwaste.cli.gantt_option import add_gantt
from gpuwaste.cli.job_sources import add_loads, add_sources, add_strict
from gpuwaste.cli.options import add, add_window
from gpuwaste.cli.seeds import add_seeds
from gpuwaste.cli.simulated_machine import add_machine
from gpuwaste.cli.words import path_word, size_word


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add what is simulated: jobs, window, machine, seeds, schedulers."""
    jobs = parser.add_argument_group("jobs")
    add_sources(jobs)
    add_loads(jobs)
    add_window(jobs, None, "jobs submitted from then on", shown="all")
    add_strict(jobs)
    jobs.add_argument("--first", type=size_word, metavar="N", help="only the first N jobs")
    machine = parser.add_argument_group("machine")
    add_machine(machine)
    add(machine, "seed", "for failures of nodes", default=1)
    add_seeds(machine)
    parser.add_argument(
        "--scheduler",
        default="easy",
        metavar="NAMES",
        help="fcfs, sjf, easy, conservative, fair_share, or slurm on nodes (default: easy)",
    )


def add_walltime(parser: argparse.ArgumentParser, model: str) -> None:
    """Add --walltime and --model; `model` is the help of the latter."""
    parser.add_argument(
        "--walltime",
        choices=("user", "truth", "recent", "model"),
        default="user",
        help="what schedulers plan with: the limit, the real run time, the mean of its user's last two jobs, or the "
        "median of its user's ended jobs (default: user)",
    )
    parser.add_argument("--model", metavar="NAME", help=model)


def add_results(parser: argparse.ArgumentParser, output: str) -> None:
    """Add where the result goes; `output` is the help of -o."""
    results = parser.add_argument_group("results")
    results.add_argument("-o", "--output", type=path_word, metavar="FILE", help=output)
    results.add_argument(
        "--html", type=path_word, metavar="DIR", help="write the result as pages that open from disk, with CSV and SVG"
    )
    add_gantt(results)
    results.add_argument(
        "--save",
        action="store_true",
        help="save the result in hub.state_dir, for gpuwaste simulate compare and the hub's pages",
    )
    add(results, "json")
