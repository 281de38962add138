"""End an action that was not sent yet. For operators."""

import argparse

from gpuwaste.cli.options import add_config, config_of

HELP = "refuse an action that was not sent yet (operators)"
EXAMPLES = (("gpuwaste rules refuse 3f2a9c81d0b4", "Do not take this action."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("id", metavar="ID", help="the action's id, or its first 8 characters or more")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Send the decision to the hub and print the action's new state."""
    from gpuwaste.cli.action_orders import decide

    return decide(config_of(options), options.id, "refuse")
