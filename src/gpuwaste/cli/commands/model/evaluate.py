"""Evaluate predictions on the last part of a job history, compared with simple baselines; stores nothing."""

import argparse

from gpuwaste.cli.job_sources import add_sources
from gpuwaste.cli.options import add, add_as_job, add_config, add_learning, config_of

HELP = "evaluate predictions on a job history, compared with simple baselines"
EXAMPLES = (
    ("gpuwaste model evaluate --swf log.swf.gz", "How good predictions would have been on a public log."),
    (
        "gpuwaste model evaluate --sacct sacct.txt --trials 20 --as-job --partition cpu",
        "As a job of Slurm.",
    ),
)


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
    add_as_job(parser, "the history and this directory must be shared with the nodes")
    add(parser, "json", "{target: {method: {metric: value}}}")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate and print."""
    if options.as_job:
        from pathlib import Path

        from gpuwaste.cli.as_job import submit_and_tell

        return submit_and_tell(options, config_of(options), "evaluate", Path.cwd())
    from gpuwaste.cli.train_evaluate import evaluate_and_tell

    return evaluate_and_tell(options, config_of(options))
