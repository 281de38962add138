"""Actions of a command that are files of a package: found by name, as commands are."""

import argparse
import importlib
import os
from types import ModuleType


def add_actions(parser: argparse.ArgumentParser, package: ModuleType) -> None:
    """Add an action for each file of a package: a module with HELP, arguments(parser) and run(options) -> exit code.

    The command itself still runs where no action is named; `chosen_action` says which one was.
    """
    files = (name for folder in package.__path__ for name in os.listdir(folder))  # noqa: PTH208 pathlib costs start-up
    names = sorted(name.removesuffix(".py") for name in files if name.endswith(".py") and name[0] != "_")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=False)
    for name in names:
        module = importlib.import_module(f"{package.__name__}.{name}")
        action = actions.add_parser(name, help=module.HELP, description=module.__doc__)
        module.arguments(action)
        action.set_defaults(run_action=module.run)


def run_action(options: argparse.Namespace) -> int | None:
    """Run the action that was named and return its exit code; None where none was."""
    if options.action is None:
        return None
    code: int = options.run_action(options)
    return code
