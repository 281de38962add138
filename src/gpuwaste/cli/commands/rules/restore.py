"""Give a rule that went back to mode notify by itself the mode of its file again. For operators."""

import argparse
import sys

from gpuwaste.cli.options import add_config, config_of

HELP = "let a rule act again that was misjudging too often (operators)"
EXAMPLES = (("gpuwaste rules restore idle-gpus", "The rule is in mode act again; only later steps are judged."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("rule", metavar="RULE", help="the rule's name, as gpuwaste rules list prints it")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Send the order to the hub and print the rule's mode."""
    from gpuwaste.act.rules.rule_types import RuleRestored
    from gpuwaste.cli.hub_access import hub_client
    from gpuwaste.cli.options import typed
    from gpuwaste.core.errors import UsageError
    from gpuwaste.core.text import PLAIN_NAME

    if not PLAIN_NAME.fullmatch(options.rule):
        raise UsageError(f"rule {options.rule[:70]!r}: expected a rule's name, see gpuwaste rules list")
    found = hub_client(config_of(options)).post(f"/v1/rules/{options.rule}/restore", {})
    restored = typed(found, RuleRestored, printed=True)
    sys.stdout.write(f"{restored.name}: mode {restored.mode}\n")
    return 0
