"""Take no action from now on: at the hub, and on the actor's host also while the hub is down."""

import argparse

from gpuwaste.cli.options import add_config, config_of

HELP = "stop all actions; on the actor's host this works without the hub"
EXAMPLES = (("gpuwaste rules stop", "Stop all actions."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Stop, and print where."""
    from gpuwaste.cli.action_orders import stop

    return stop(config_of(options), stop=True)
