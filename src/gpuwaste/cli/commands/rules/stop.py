"""Take no action from now on: at the hub, and on the actor's host also while the hub is down."""

import argparse

from gpuwaste.cli.options import add_config, config_of

HELP = "take no action from now on, on the actor's host also while the hub is down"
EXAMPLES = (("gpuwaste rules stop", "No action is taken from now on."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Stop, and print where."""
    from gpuwaste.cli.action_orders import stop

    return stop(config_of(options), stop=True)
