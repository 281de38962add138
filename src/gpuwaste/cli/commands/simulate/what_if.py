"""Simulate a history of jobs with changes: other requests, limits, policies, machines, compared with the base."""

import argparse

from gpuwaste.cli.options import add, add_config, config_of
from gpuwaste.cli.simulate_options import add_jobs, add_results, add_walltime

HELP = "the same jobs with other requests, limits, policies or nodes"
EXAMPLES = (
    ("gpuwaste simulate what-if gpus -S now-30days", "GPU requests as large as what was used, in the last month."),
    (
        "gpuwaste simulate what-if limits=0.9,wrap -S now-28days --propose --save",
        "Propose one of two changes, from the last four weeks.",
    ),
    ("gpuwaste simulate what-if processors=1.2 --swf log.swf.gz", "A machine that is larger by a fifth."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "what_if",
        metavar="CHANGES",
        help="changes, separated by commas: gpus, limits[=Q], policy, processors=F (1.2, +64, -64), wrap[=MINUTES]; "
        "on nodes also nodes:TYPE=F, partition:NAME:SETTING=VALUE, priority:SETTING=VALUE",
    )
    add_jobs(parser)
    add_walltime(
        parser,
        "model of models_dir, or none: for --walltime model (default: none, the user's ended jobs) and the change "
        "policy (default: the one in use)",
    )
    parser.add_argument(
        "--resource",
        choices=("processors", "gpus"),
        help="unit of the machine's size (default: gpus with the change gpus, otherwise processors)",
    )
    add(parser, "policies", "for the change policy", shown="advisor.policies_dir")
    parser.add_argument(
        "--propose",
        action="store_true",
        help="choose the change that shortens the mean wait most, if its interval excludes 0; with --save the hub "
        "sends the event policy.proposed",
    )
    add_results(parser, "write each job's starts there, as CSV")
    add_config(parser)
    parser.set_defaults(write_machine=None, engine=None, runs=None, speed=None)


def run(options: argparse.Namespace) -> int:
    """Simulate the base and each change, and print the differences."""
    from gpuwaste.cli.simulate_run import simulate_and_tell
    from gpuwaste.cli.words import listed
    from gpuwaste.core.errors import UsageError

    if not listed(options.what_if):
        raise UsageError("simulate what-if: no change given: expected gpus, limits, policy, processors=F or wrap")
    return simulate_and_tell(options, config_of(options))
