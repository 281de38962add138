"""The site's rules: list and check them, what one makes of a job, what it would have done on history."""

import argparse

from gpuwaste.cli.options import add, add_config, add_window, config_of
from gpuwaste.cli.resource_commands import add_reads
from gpuwaste.cli.words import path_word

HELP = "rules: what should be done about idle GPUs and other events"
EXAMPLES = (
    ("gpuwaste rules check /etc/gpuwaste/rules.d", "Before the hub reads changed rules."),
    ("gpuwaste rules replay idle-gpus -S now-30days", "Whom a rule would have hit, and how often it would be wrong."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_reads(actions, "rules")
    check = actions.add_parser("check", help="print what each rule does; exit code 2 if a file is wrong")
    check.add_argument("paths", nargs="*", type=path_word, metavar="DIR|FILE", help="rules (default: hub.rules_dir)")
    explain = actions.add_parser("explain", help="what a rule's condition is made of, with -j its values (operators)")
    test = actions.add_parser("test", help="what a rule would do with a job now; nothing is done (operators)")
    replay = actions.add_parser("replay", help="what a rule would have done on history (operators)")
    for named in (explain, test, replay):
        named.add_argument("rule", metavar="RULE", help="name of a rule in hub.rules_dir, or a file ending in .toml")
    add(explain, "jobs", "or a node's name")
    add(test, "jobs", "or a node's name", required=True)
    add_window(replay, "now-30days")
    for answering in (explain, test, replay):
        add(answering, "json")
    for each in (check, explain, test, replay):
        add_config(each)


def run(options: argparse.Namespace) -> int:
    """Do it and print the result."""
    from gpuwaste.cli import rule_commands

    config = config_of(options)
    actions = {
        "check": rule_commands.check,
        "explain": rule_commands.explain,
        "test": rule_commands.test,
        "replay": rule_commands.replay,
    }
    return actions[options.action](options, config)
