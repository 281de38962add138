"""Actions of a command, such as `model train`: the files of its package, found by name, as commands are."""

import argparse
import os
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpuwaste.cli.help_text import describe
from gpuwaste.cli.old_names import new_name
from gpuwaste.core.registry import ModuleRegistry

if TYPE_CHECKING:
    _SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - the way to distinguish them
else:
    _SubParsers = argparse._SubParsersAction  # noqa: SLF001 - same


class ActionGroup:
    """A command that has only actions: the files of its package, and what a file of resources declares."""

    def __init__(self, package: ModuleType) -> None:
        """Name the package: it has HELP and EXAMPLES, and READS where a file of resources declares actions, too."""
        self.HELP, self.EXAMPLES, self.__doc__ = package.HELP, package.EXAMPLES, package.__doc__
        self._package, self._reads = package, getattr(package, "READS", "")

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the actions."""
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        if self._reads:
            from gpuwaste.cli.resource_commands import add_reads

            add_reads(actions, self._reads)
        _add_files(actions, self._package)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        """Run the action that was named."""
        code: int = options.run_action(options)
        return code


def _files(package: ModuleType | str) -> Mapping[str, Any]:
    return ModuleRegistry[Any](package, "HELP", "EXAMPLES", "arguments", "run")


def _add_files(actions: Any, package: ModuleType | str) -> None:
    """Add an action for each file of a package: a module with HELP, EXAMPLES, arguments(parser), run(options)."""
    for name, module in _files(package).items():
        action = actions.add_parser(name.replace("_", "-"), help=module.HELP)
        describe(action, module.__doc__, module.EXAMPLES)
        module.arguments(action)
        action.set_defaults(run_action=module.run)


def add_actions_or_file(parser: argparse.ArgumentParser, package: ModuleType) -> None:
    """Add the actions of a package, or files instead: other words are `files`, and the command itself runs."""
    parser.set_defaults(files=())
    actions = parser.add_subparsers(dest="action", metavar="FILE|ACTION", required=False, action=_ActionOrFile)
    _add_files(actions, package)
    actions.choices = _AnyWord(actions.choices)


class _AnyWord(dict[str, Any]):
    """Names of actions, without an error for another word: it is a file."""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str)


class _ActionOrFile(_SubParsers):
    """Runs an action's parser; a word that names no action is a file of the command, as are those that follow."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Handle the word, and those that follow."""
        from gpuwaste.cli.words import path_word

        word, *rest = values
        if word in self.choices.keys() and not namespace.files:  # noqa: SIM118 - the names, not any word
            super().__call__(parser, namespace, values, option_string)
            return
        moved = new_name((*parser.prog.split()[1:], word))
        if moved and not os.path.exists(word):  # noqa: PTH110 pathlib costs start-up
            parser.error(moved)
        try:
            namespace.files = (*namespace.files, path_word(word))
        except argparse.ArgumentTypeError as error:
            parser.error(str(error))
        _, unknown = parser.parse_known_args(rest, namespace)
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")


def run_action(options: argparse.Namespace) -> int | None:
    """Run the action that was named and return its exit code; None where none was."""
    if options.action is None:
        return None
    code: int = options.run_action(options)
    return code
