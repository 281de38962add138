"""Simulate schedulers on a history of jobs: waits, slowdown and utilization under each of them."""

import argparse

from gpuwaste.cli import simulate_actions
from gpuwaste.cli.action_files import add_actions, run_action
from gpuwaste.cli.gantt_option import add_gantt
from gpuwaste.cli.job_sources import add_loads, add_sources, add_strict
from gpuwaste.cli.options import add, add_config, add_window, config_of
from gpuwaste.cli.real_engine import add_engine
from gpuwaste.cli.seeds import add_seeds
from gpuwaste.cli.simulated_machine import add_machine
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
    (
        "gpuwaste simulate -S now-30days --what-if gpus",
        "GPU requests as large as what was used, beside those of the last month.",
    ),
    (
        "gpuwaste simulate -S now-28days --what-if limits=0.9,wrap --propose --save",
        "Propose one of two changes, from the last four weeks.",
    ),
    (
        "gpuwaste simulate --generate lublin:jobs=5000 --step thin=0.8",
        "A generated load, of which a fifth is left out.",
    ),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_sources(parser)
    add_loads(parser)
    add_window(parser, None, "jobs submitted from then on", shown="all")
    add_machine(parser)
    add(parser, "seed", "for failures of nodes", default=1)
    add_seeds(parser)
    add_strict(parser)
    parser.add_argument("--first", type=size_word, metavar="N", help="only the first N jobs")
    parser.add_argument(
        "--scheduler",
        default="easy",
        metavar="NAMES",
        help="fcfs, sjf, easy, conservative, fair_share, or slurm on nodes (default: easy)",
    )
    parser.add_argument(
        "--walltime",
        choices=("user", "truth", "recent", "model"),
        default="user",
        help="what schedulers plan with: the limit, what it ran, its user's last two jobs, or the median of its "
        "user's ended jobs (default: user)",
    )
    parser.add_argument(
        "--what-if",
        default="",
        metavar="NAMES",
        help="changes to simulate beside the base: gpus, limits[=Q], policy, processors=F (1.2, +64, -64), "
        "wrap[=MINUTES]; on nodes also nodes:TYPE=F, partition:NAME:SETTING=VALUE, priority:SETTING=VALUE",
    )
    parser.add_argument(
        "--resource",
        choices=("processors", "gpus"),
        help="what the machine's size counts (default: gpus with --what-if gpus, otherwise processors)",
    )
    add(parser, "policies", "with --what-if policy", shown="advisor.policies_dir")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="model of models_dir, or none: for --walltime model (default: none, the user's ended jobs) and "
        "--what-if policy (default: the one in use)",
    )
    add_engine(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=path_word,
        metavar="FILE",
        help="write each job's starts there, as CSV; with --engine: the directory of its runs",
    )
    parser.add_argument(
        "--html", type=path_word, metavar="DIR", help="write the result as pages that open from disk, with CSV and SVG"
    )
    add_gantt(parser)
    parser.add_argument(
        "--save", action="store_true", help="save the result in hub.state_dir, for --compare and the hub's pages"
    )
    parser.add_argument(
        "--compare",
        metavar="A,B",
        help="print what differs between two saved results: ID, or ID:RUN such as ID:gpus:easy",
    )
    parser.add_argument(
        "--propose",
        action="store_true",
        help="choose the change of --what-if that shortens the mean wait most, if its interval excludes 0; with --save "
        "the hub tells event policy.proposed",
    )
    add(parser, "json")
    add_config(parser)
    add_actions(parser, simulate_actions)


def run(options: argparse.Namespace) -> int:
    """Simulate and print, or run the action that was named."""
    code = run_action(options)
    if code is not None:
        return code
    from gpuwaste.cli.simulate_run import simulate_and_tell

    return simulate_and_tell(options, config_of(options))
