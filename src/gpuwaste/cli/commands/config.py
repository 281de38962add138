"""Check the configuration file, or print every key with its value."""

import argparse
import sys

from gpuwaste.cli.interrupts import tell
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
        "check", help="check that the daemons and submit plugins can use the files; exit code 2 if not"
    )
    add_config(check)
    add_role(check)
    add_config(
        actions.add_parser(
            "show", help="print every key with its value as TOML; comments name the file and line that set it"
        )
    )


def run(options: argparse.Namespace) -> int:
    """Show the configuration, or check all of it: each fault is a line that names file, section and key."""
    if options.action == "show":
        return _show(options)
    from gpuwaste.cli.config_check import placed, problems
    from gpuwaste.core.config import DEFAULT_PATH, faulty_config
    from gpuwaste.core.config_files import config_files
    from gpuwaste.show.terminal_cells import one_line

    config, layers, faults = faulty_config(options.config)
    path = options.config or DEFAULT_PATH
    for fault in faults:
        tell(f"gpuwaste: {one_line(str(fault))}\n")
    found = problems(path, config, roles_of(options, config), faults)
    for problem in found:
        sys.stdout.write(f"{placed(path, layers, one_line(problem))}\n")
    if found or faults:
        return EXIT_WRONG
    for file in config_files(path):
        sys.stdout.write(f"{file}: {'ok' if file.exists() else 'absent: the defaults are used'}\n")
    return 0


def _show(options: argparse.Namespace) -> int:
    from gpuwaste.core.config import describe_config, load_layers
    from gpuwaste.core.config_files import place_of
    from gpuwaste.core.typed_toml import toml_value

    config, layers = config_of(options), load_layers(options.config)
    shown = ""
    for section, key, _, _, text in describe_config():
        if section != shown:
            sys.stdout.write(f"{chr(10) if shown else ''}[{section}]\n")
            shown = section
        place = place_of(layers, section, key)
        origin = f"set in {place}: " if place else ""
        value = toml_value(getattr(getattr(config, section), key))
        sys.stdout.write(f"{key.removesuffix('_')} = {value}  # {origin}{text}\n")
    return 0
