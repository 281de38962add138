"""Take actions again after `gpuwaste rules stop`."""

import argparse

from gpuwaste.cli.options import add_config, config_of

HELP = "take actions again"
EXAMPLES = (("gpuwaste rules resume", "Take actions again."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Remove the stop, and print where."""
    from gpuwaste.cli.action_orders import stop

    return stop(config_of(options), stop=False)
