"""Let an action be taken that waits for a person. For operators."""

import argparse

from gpuwaste.cli.options import add_config, config_of

HELP = "approve an action that waits for a person (operators)"
EXAMPLES = (("gpuwaste rules approve 3f2a9c81d0b4", "Let the actor take this action."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("id", metavar="ID", help="the action's id, or its first 8 characters or more")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Send the decision to the hub and print the action's new state."""
    from gpuwaste.cli.action_orders import decide

    return decide(config_of(options), options.id, "approve")
