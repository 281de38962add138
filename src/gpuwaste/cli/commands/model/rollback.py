"""Use the previous model again."""

import argparse

from gpuwaste.cli.model_registry import add_if_champion, add_registry, check_champion, owned_registry, print_champion
from gpuwaste.cli.options import config_of

HELP = "use the previous model again"
EXAMPLES = (("gpuwaste model rollback", "The model that was in use before."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_if_champion(parser)
    add_registry(parser)


def run(options: argparse.Namespace) -> int:
    """Change back and print the model in use."""
    registry = owned_registry(options, config_of(options))
    check_champion(registry, options.if_champion)
    return print_champion(registry.rollback(), options)
