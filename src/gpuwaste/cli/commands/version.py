"""Print the version."""

import argparse
import sys

HELP = "print the version"
EXAMPLES = (("gpuwaste version", "The version, as with gpuwaste --version."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no option."""


def run(options: argparse.Namespace) -> int:  # noqa: ARG001 every command takes them
    """Print it."""
    from gpuwaste.core.version import own_version

    sys.stdout.write(f"gpuwaste {own_version()}\n")
    return 0
