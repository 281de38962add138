"""Actions that rules want: list them, approve or refuse one, stop all of them."""

import argparse

from gpuwaste.cli.options import add, add_config, config_of
from gpuwaste.cli.resource_commands import add_reads

HELP = "actions that rules want: list, show, approve, refuse, stop, lift"
EXAMPLES = (
    ("gpuwaste actions list --status intended", "Actions that wait."),
    ("gpuwaste actions approve 3f2a9c81d0b4", "Let the actor take this one."),
    ("gpuwaste actions stop", "No action is taken from now on."),
)
_DECISIONS = {
    "approve": "let an action that waits for a person be taken",
    "refuse": "end an action that was not sent yet",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_reads(actions, "actions")
    show = actions.add_parser("show", help="print one action with all its steps")
    show.add_argument("id", metavar="ID", help="the action's id, or its first 8 characters or more")
    add(show, "json")
    add_config(show)
    for name, text in _DECISIONS.items():
        decision = actions.add_parser(name, help=f"{text} (operators)")
        decision.add_argument("id", metavar="ID", help="the action's id, or its first 8 characters or more")
        add_config(decision)
    for name, text in {
        "stop": "take no action from now on: at the hub, and on the actor's host also with the hub down",
        "lift": "lift a stop",
    }.items():
        add_config(actions.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}."))


def run(options: argparse.Namespace) -> int:
    """Do it and print the result."""
    from gpuwaste.cli import action_orders

    config = config_of(options)
    if options.action in {"stop", "lift"}:
        return action_orders.stop(config, stop=options.action == "stop")
    if options.action in _DECISIONS:
        return action_orders.decide(config, options.id, options.action)
    return action_orders.show(config, options.id, as_json=options.json)
