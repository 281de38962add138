"""Check the configuration file, or print every key with its value."""

import argparse
import sys
from typing import TYPE_CHECKING

from gpuwaste.cli.options import add_config, add_role, config_of, roles_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuwaste.core.config import Config
    from gpuwaste.core.config_files import ConfigLayer

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
        "check", help="check that the daemons and submit plugins can use the files; exit code 2 if not"
    )
    add_config(check)
    add_role(check)
    add_config(
        actions.add_parser(
            "show", help="print every key with its value; * marks a value that a file changes, with file and line"
        )
    )


def run(options: argparse.Namespace) -> int:
    """Read the file; a wrong one is an error that names file, section and key."""
    from gpuwaste.core.config import DEFAULT_PATH, load_layers
    from gpuwaste.core.config_files import config_files

    config = config_of(options)
    path = options.config or DEFAULT_PATH
    layers = load_layers(options.config)
    if options.action == "show":
        return _show(config, layers)
    from gpuwaste.cli.config_check import placed, problems
    from gpuwaste.report.cells import one_line

    found = problems(path, config, roles_of(options, config))
    for problem in found:
        sys.stdout.write(f"{placed(path, layers, one_line(problem))}\n")
    if not found:
        for file in config_files(path):
            sys.stdout.write(f"{file}: {'ok' if file.exists() else 'absent: the defaults are used'}\n")
    return EXIT_WRONG if found else 0


def _show(config: "Config", layers: "Sequence[ConfigLayer]") -> int:
    from gpuwaste.core.config import describe_config
    from gpuwaste.core.config_files import place_of

    for section, key, _, default, text in describe_config():
        value = getattr(getattr(config, section), key)
        place = place_of(layers, section, key)
        origin = f" ({place})" if place else ""
        sys.stdout.write(f"{' ' if value == default else '*'} {section}.{key} = {value!r}{origin}    # {text}\n")
    return 0
