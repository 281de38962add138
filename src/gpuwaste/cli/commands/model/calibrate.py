"""Measure a GPU type once: one job that runs generated programs with the site's own framework, and can be resumed.

The directory keeps plan, scripts and records. The same command again submits the job again, which goes on.
"""

import argparse

from gpuwaste.cli.options import add, add_config, config_of
from gpuwaste.cli.words import path_word, size_word

HELP = "measure a GPU type with generated programs, in one job"
EXAMPLES = (
    (
        "gpuwaste model calibrate --gpu h100 --python ~/jax/bin/python",
        "Submit the job; about an hour on one H100.",
    ),
    (
        "gpuwaste model calibrate --gpu a100-40gb --gres gpu:a100:1 -o cal --no-submit",
        "Only write the directory, to read cal/job.sh first.",
    ),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--gpu", required=True, metavar="TYPE", help="GPU type, as gpuwaste estimate knows it")
    parser.add_argument("--gres", metavar="GRES", help="what the job requests (default: gpu:TYPE:1)")
    parser.add_argument(
        "--python", default="python3", metavar="PATH", help="Python with jax or torch, on the node (default: python3)"
    )
    parser.add_argument(
        "--framework",
        choices=("auto", "jax", "torch"),
        default="auto",
        help="framework to measure with (default: auto)",
    )
    parser.add_argument(
        "--minutes", type=size_word, default=60, metavar="N", help="time budget; no program starts later (default: 60)"
    )
    parser.add_argument(
        "--memory-gib",
        type=size_word,
        default=0,
        metavar="N",
        help="leave out programs that need more GPU memory (default: try all)",
    )
    parser.add_argument("--partition", default="", metavar="NAME", help="partition of the job")
    add(parser, "accounts", "account to charge", default="")
    parser.add_argument(
        "-o",
        "--output",
        type=path_word,
        metavar="DIR",
        help="directory, shared with the node (default: calibration-TYPE)",
    )
    parser.add_argument("--no-submit", action="store_true", help="write the directory and print the sbatch command")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Write the directory and submit the job."""
    from gpuwaste.cli.step_time_models import calibrate_and_tell

    return calibrate_and_tell(options, config_of(options))
