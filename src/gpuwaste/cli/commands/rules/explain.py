"""Print the parts of a rule's condition; with -j their values for a job now, and what the rule would do with it.

Nothing is done or recorded. For operators.
"""

import argparse

from gpuwaste.cli.options import add, add_config, config_of
from gpuwaste.cli.rule_options import add_rule

HELP = "the parts of a rule's condition; with -j what it would do with a job now (operators)"
EXAMPLES = (("gpuwaste rules explain idle-gpus -j 4711", "Whether this rule applies to job 4711, and why."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_rule(parser)
    add(parser, "jobs", "or a node's name")
    add(parser, "json")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub and print its answer."""
    from gpuwaste.cli.rule_commands import explain

    return explain(options, config_of(options))
