"""Simulate schedulers on a history of jobs, or on a generated load: waits, slowdown and utilization."""

import argparse

from gpuwaste.cli.options import add_config, config_of
from gpuwaste.cli.real_engine import add_engine
from gpuwaste.cli.simulate_options import add_jobs, add_results, add_walltime
from gpuwaste.cli.simulated_machine import add_write_machine

HELP = "schedulers on a history of jobs, or on a generated load"
EXAMPLES = (
    ("gpuwaste simulate run --swf log.swf.gz --scheduler fcfs,easy,conservative", "Backfill on a public log."),
    (
        "gpuwaste simulate run --live --write-machine site.toml",
        "Describe this cluster in a file, to change it.",
    ),
    (
        "gpuwaste simulate run --live -S now-2days -E now-1days --engine slurmctld --runs 5 -o runs",
        "The same jobs five times on a real slurmctld with this cluster's configuration.",
    ),
    ("gpuwaste simulate run -S now-30days --walltime truth", "EASY on the site's last month, with exact time limits."),
    (
        "gpuwaste simulate run --generate lublin:jobs=5000 --step thin=0.8",
        "A generated load, a fifth left out.",
    ),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_jobs(parser)
    add_walltime(parser, "model of models_dir, or none: for --walltime model (default: none, the user's ended jobs)")
    parser.add_argument(
        "--resource", choices=("processors", "gpus"), help="unit of the machine's size (default: processors)"
    )
    add_write_machine(parser)
    add_engine(parser)
    add_results(parser, "write each job's starts there, as CSV; with --engine: the directory of its runs")
    add_config(parser)
    parser.set_defaults(what_if="", propose=False, policies=None)


def run(options: argparse.Namespace) -> int:
    """Simulate and print."""
    from gpuwaste.cli.simulate_run import simulate_and_tell

    return simulate_and_tell(options, config_of(options))
