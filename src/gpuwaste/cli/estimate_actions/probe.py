"""Print a probe: a script to run where your framework is, which writes your program for `gpuwaste estimate`.

It needs no GPU and no gpuwaste: `python probe.py my_training:program -o program.json`.
"""

import argparse
import sys

HELP = "print a script that writes your program, to run in your own environment"
EXAMPLES = (
    ("gpuwaste estimate probe torch", "A script to run where torch is, beside your own program."),
    ("gpuwaste estimate probe jax", "The same for JAX."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("framework", choices=("torch", "jax"), help="framework that the program uses")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from gpuwaste.cli.programs import load_program

    text: str = load_program("gpuwaste.estimate.probes", "estimate", "this host").probe_text(options.framework)
    sys.stdout.write(text)
    return 0
