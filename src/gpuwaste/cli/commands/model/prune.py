"""Remove old models; the one in use and the previous one are kept."""

import argparse

from gpuwaste.cli.model_registry import add_registry, owned_registry, print_change
from gpuwaste.cli.options import config_of

HELP = "remove old models; the one in use and the previous one are kept"
EXAMPLES = (("gpuwaste model prune --keep 3", "Keep the three newest others."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--keep", type=int, default=5, metavar="N", help="newest others to keep (default: 5)")
    add_registry(parser)


def run(options: argparse.Namespace) -> int:
    """Remove them and print their names."""
    from gpuwaste.core.errors import UsageError

    registry = owned_registry(options, config_of(options))
    if options.keep < 0:
        raise UsageError(f"--keep {options.keep}: expected 0 or more")
    return print_change({"removed": ", ".join(registry.prune(options.keep)) or "nothing"}, options)
