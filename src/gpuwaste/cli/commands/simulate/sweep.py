"""Run a study: every combination of its parameters with every seed, on this host or as a job array of Slurm."""

import argparse

from gpuwaste.cli.options import add, add_config, add_job_options, config_of
from gpuwaste.cli.words import path_word, size_word

HELP = "run a study of parameters and seeds"
EXAMPLES = (
    ("gpuwaste simulate sweep study.toml -o results --threads 8", "Eight processes of this host."),
    (
        "gpuwaste simulate sweep study.toml -o results --as-job --partition short",
        "A job array; the directory is shared.",
    ),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("study", type=path_word, metavar="STUDY", help="TOML file: experiment, seeds, fixed, grid")
    parser.add_argument(
        "-o",
        "--output",
        type=path_word,
        metavar="DIR",
        help="directory of the results (default: the study's name without .toml); cases there are not run again",
    )
    add(parser, "threads", "processes; with --as-job CPUs of each task", default=1)
    parser.add_argument("--as-job", action="store_true", help="run as a job array of this Slurm cluster, by submitit")
    parser.add_argument(
        "--tasks", type=size_word, default=64, metavar="N", help="with --as-job: tasks at most (default: 64)"
    )
    add_job_options(parser, "a task", 60)
    add(parser, "json")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Run the study and print its summary."""
    from gpuwaste.cli.sweeping import sweep_and_tell

    return sweep_and_tell(options, config_of(options))
