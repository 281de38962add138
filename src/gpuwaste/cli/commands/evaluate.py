"""Evaluate predictions on the last part of a job history, compared with simple baselines; stores nothing."""

import argparse

from gpuwaste.cli.options import add, add_config, add_learning, config_of
from gpuwaste.cli.sources import add_sources

HELP = "evaluate predictions on a job history, compared with simple baselines"
EXAMPLES = (("gpuwaste evaluate --swf log.swf.gz", "How good predictions would have been on a public log."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_sources(parser)
    add(parser, "targets", shown="all")
    parser.add_argument(
        "--protocol",
        choices=("submission", "jfp"),
        default="submission",
        help="jfp: a second column for failures, with facts known only after the run (default: submission)",
    )
    add_learning(parser, trials=0)
    add(parser, "json", "{target: {method: {metric: value}}}")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate and print."""
    from gpuwaste.cli.evaluation import evaluate_and_tell

    return evaluate_and_tell(options, config_of(options))
