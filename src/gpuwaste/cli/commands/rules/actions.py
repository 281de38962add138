"""List the actions that rules want, the newest first; with an ID print one action with all its steps."""

import argparse

from gpuwaste.cli.options import config_of
from gpuwaste.cli.resource_commands import resource_commands

HELP = "actions of rules, the newest first; with ID all steps of one"
EXAMPLES = (
    ("gpuwaste rules actions --status intended", "Actions that wait for a decision."),
    ("gpuwaste rules actions 3f2a9c81d0b4", "One action with all its steps."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("id", metavar="ID", nargs="?", help="the action's id, or its first 8 characters or more")
    resource_commands()["actions"].arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub and print its answer."""
    if options.id is None:
        return resource_commands()["actions"].run(options)
    from gpuwaste.cli.action_orders import show

    return show(config_of(options), options.id, as_json=options.form is not None)
