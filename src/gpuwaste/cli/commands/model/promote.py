"""Check a model and use it."""

import argparse

from gpuwaste.cli.model_registry import add_if_champion, add_registry, check_champion, owned_registry, print_champion
from gpuwaste.cli.options import config_of

HELP = "check a model and use it"
EXAMPLES = (("gpuwaste model promote night-2026-11-01", "Use this model, as gpuwaste model list prints its name."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", help="model, as list prints it")
    add_if_champion(parser)
    add_registry(parser)


def run(options: argparse.Namespace) -> int:
    """Promote it and print the model in use."""
    registry = owned_registry(options, config_of(options))
    check_champion(registry, options.if_champion)
    return print_champion(registry.promote(options.name), options)
