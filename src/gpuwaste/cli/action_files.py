"""Actions of a command that are files of a package: found by name, as commands are."""

import argparse
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpuwaste.core.registry import ModuleRegistry

if TYPE_CHECKING:
    _SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - the way to distinguish them
else:
    _SubParsers = argparse._SubParsersAction  # noqa: SLF001 - same


def add_actions(
    parser: argparse.ArgumentParser, package: ModuleType, kind: Any = None, metavar: str = "ACTION"
) -> None:
    """Add an action for each file of a package: a module with HELP, arguments(parser) and run(options) -> exit code.

    The command itself still runs where no action is named; `chosen_action` is the name of the chosen one.
    """
    more = {} if kind is None else {"action": kind}
    actions = parser.add_subparsers(dest="action", metavar=metavar, required=False, **more)
    for name, module in ModuleRegistry[Any](package, "HELP", "arguments", "run").items():
        action = actions.add_parser(name, help=module.HELP, description=module.__doc__)
        module.arguments(action)
        action.set_defaults(run_action=module.run)
    if kind is not None:
        actions.choices = _AnyWord(actions.choices)


def add_actions_or_file(parser: argparse.ArgumentParser, package: ModuleType) -> None:
    """Add the actions of a package, or files instead: other words are `files`, and the command itself runs."""
    parser.set_defaults(files=())
    add_actions(parser, package, _ActionOrFile, "FILE|ACTION")


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
