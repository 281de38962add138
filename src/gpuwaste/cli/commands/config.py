"""Check the configuration file, or print every key with its value."""

import argparse
import sys

from gpuwaste.cli.options import add_config, add_role, config_of, roles_of

HELP = "check or show the configuration"
EXAMPLES = (
    ("gpuwaste config check", "Before starting or reloading a service."),
    ("gpuwaste config show", "Every key with its value."),
)
EXIT_WRONG = 2


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check", help="check that the daemons and submit plugins can use the file; exit code 2 if not"
    )
    add_config(check)
    add_role(check)
    add_config(actions.add_parser("show", help="print every key with its value; * marks a value that the file changes"))


def run(options: argparse.Namespace) -> int:
    """Read the file; a wrong one is an error that names file, section and key."""
    from gpuwaste.core.config import DEFAULT_PATH, describe_config

    config = config_of(options)
    path = options.config or DEFAULT_PATH
    if options.action == "check":
        from gpuwaste.cli.config_check import problems
        from gpuwaste.report.cells import one_line

        found = problems(path, config, roles_of(options, config))
        for problem in found:
            sys.stdout.write(f"{path}: {one_line(problem)}\n")
        if not found:
            sys.stdout.write(f"{path}: {'ok' if path.exists() else 'absent: the defaults are used'}\n")
        return EXIT_WRONG if found else 0
    for section, key, _, default, text in describe_config():
        value = getattr(getattr(config, section), key)
        sys.stdout.write(f"{' ' if value == default else '*'} {section}.{key} = {value!r}    # {text}\n")
    return 0
