"""Print what each policy does. Exit code 2 if a file has an error."""

import argparse

from gpuwaste.cli.options import add_config, config_of
from gpuwaste.cli.words import path_word

HELP = "what each policy does; exit code 2 if a file has an error"
EXAMPLES = (("gpuwaste policy check ./policies.d", "Before policies are copied to /etc."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "paths", nargs="*", type=path_word, metavar="DIR|FILE", help="policies (default: advisor.policies_dir)"
    )
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Check the files and print them."""
    from gpuwaste.cli.policy_commands import check

    return check(options.paths, config_of(options))
