"""Report what a rule would have done on history: whom it would have hit, and how often it would be wrong."""

import argparse

from gpuwaste.cli.options import add, add_config, add_window, config_of
from gpuwaste.cli.rule_options import add_rule

HELP = "what a rule would have done on history (operators)"
EXAMPLES = (("gpuwaste rules replay idle-gpus -S now-30days", "The last month."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_rule(parser)
    add_window(parser, "now-30days")
    add(parser, "json")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub and print its answer."""
    from gpuwaste.cli.rule_commands import replay

    return replay(options, config_of(options))
