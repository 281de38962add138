"""Print what each rule does. Exit code 2 if a file has an error."""

import argparse

from gpuwaste.cli.options import add_config, config_of
from gpuwaste.cli.words import path_word

HELP = "what each rule does; exit code 2 if a file has an error"
EXAMPLES = (("gpuwaste rules check /etc/gpuwaste/rules.d", "Before the hub loads changed rules."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("paths", nargs="*", type=path_word, metavar="DIR|FILE", help="rules (default: hub.rules_dir)")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Check the files and print them."""
    from gpuwaste.cli.rule_commands import check

    return check(options, config_of(options))
