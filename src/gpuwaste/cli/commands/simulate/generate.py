"""Draw a load of jobs by a model and write it as a log in Standard Workload Format, or list the models."""

import argparse
import sys

from gpuwaste.cli.job_sources import add_sources, add_steps
from gpuwaste.cli.options import add_config, config_of
from gpuwaste.cli.words import path_word

HELP = "generate a load and write it as a log, or list the generators"
EXAMPLES = (
    ("gpuwaste simulate generate", "The generators, the steps and their parameters."),
    ("gpuwaste simulate generate lublin jobs=5000 processors=512 seed=3 -o lublin.swf", "A load of 5000 jobs."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("generator", nargs="?", metavar="NAME", help="generator; without it, all are listed")
    parser.add_argument("values", nargs="*", metavar="KEY=VALUE", help="its parameters, such as jobs=5000")
    parser.add_argument("-o", "--output", type=path_word, metavar="FILE", help="log to write; .xz and .gz compress")
    add_steps(parser)
    add_sources(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Draw and write, or list."""
    from gpuwaste.cli.generating import listed_text, write_load
    from gpuwaste.core.errors import UsageError

    if options.generator is None:
        sys.stdout.write(listed_text())
        return 0
    if options.output is None:
        raise UsageError("simulate generate: -o FILE: name the log to write")
    sys.stdout.write(write_load(options, config_of(options)))
    return 0
