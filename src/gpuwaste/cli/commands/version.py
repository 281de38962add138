"""Print the version."""

import argparse
import sys

HELP = "the version"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no option."""


def run(options: argparse.Namespace) -> int:  # noqa: ARG001 every command takes them
    """Print it."""
    from importlib.metadata import version

    sys.stdout.write(f"gpuwaste {version('gpuwaste')}\n")
    return 0
