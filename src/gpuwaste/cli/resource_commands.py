"""Commands that print the hub's answers, as resources declare them: full commands, and actions of other commands."""

import argparse
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

from gpuwaste.cli.help_text import describe
from gpuwaste.cli.options import (
    add,
    add_config,
    add_formats,
    add_forms,
    config_of,
    emit,
    typed,
)
from gpuwaste.cli.words import count_word
from gpuwaste.core.errors import NoDataError
from gpuwaste.core.registry import ResourceFile, resource_files

if TYPE_CHECKING:
    from gpuwaste.core.fields import Document
    from gpuwaste.show.resource import ReadCommand, Resource

_WINDOW: Final = {"start": "starttime", "end": "endtime"}


@cache
def resource_commands() -> dict[str, "ResourceCommand"]:
    """Return what files of resources declare for a terminal, by their names; nothing of them is imported."""
    return {file.name: ResourceCommand(file) for file in resource_files() if file.has_reads}


def add_reads(actions: Any, name: str) -> None:
    """Add the actions that the file NAME_resource.py declares to a parser's actions."""
    for reading in resource_commands()[name].readings:
        command = reading.command
        sub = actions.add_parser(command.action, help=command.about)
        describe(sub, f"{command.about[:1].upper()}{command.about[1:]}.", command.examples)
        reading.arguments(sub)
        sub.set_defaults(run=reading.run, run_action=reading.run)


class ResourceCommand:
    """The interface of a command's module, for a file of resources: until it runs only name and docstring are known."""

    def __init__(self, file: ResourceFile) -> None:
        self._file = file
        self.is_command = file.is_command
        begin, rest = file.title[:2], file.title[2:].rstrip(".")
        self.HELP = (begin if begin.isupper() else begin.lower()) + rest
        self.__doc__ = file.about

    @property
    def EXAMPLES(self) -> tuple[tuple[str, str], ...]:  # noqa: N802 the name in modules of commands
        """Examples with a description of each."""
        return tuple(self.readings[0].command.examples)

    @cached_property
    def readings(self) -> "list[ReadingCommand]":
        """The commands of the file."""
        from gpuwaste.show.resource import Resource

        declared = self._file.module().RESOURCES
        resources = [one for one in declared if isinstance(one, Resource)]
        return [ReadingCommand(one, command) for one in resources for command in one.commands]

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        self.readings[0].arguments(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Query the hub and print its answer."""
        return self.readings[0].run(options)


class ReadingCommand:
    """One resource as a command prints it."""

    def __init__(self, resource: "Resource[Any, Any]", command: "ReadCommand[Any]") -> None:
        self._resource = resource
        self.command = command

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        for name, kind in self._fields.items():
            self._option(parser, name, kind)
        if share := self.command.share:
            add_formats(parser, share.about)
        else:
            add_forms(parser, table=self.command.forms)
        add_config(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Query the hub and print its answer."""
        from gpuwaste.cli.hub_access import LONG_PATIENCE_S, PATIENCE_S, ask_hub

        command = self.command
        as_text = options.form is None
        patience_s = LONG_PATIENCE_S if command.long else PATIENCE_S
        raw = ask_hub(config_of(options), self._resource.path, self._query(options, as_text=as_text), patience_s)
        document: Document = typed(raw, self._resource.document, printed=as_text)
        empty = bool(command.rows) and not getattr(document, command.rows)
        if empty and as_text and command.nothing:
            raise NoDataError(command.nothing)
        wasted = command.share.of(document) if command.share else None
        return emit(raw, document, options, command.text, empty=empty, wasted=wasted)

    @cached_property
    def _fields(self) -> dict[str, Any]:
        hints = get_type_hints(self._resource.question, include_extras=True)
        return {name: kind for name, kind in hints.items() if name != "limit" or not self.command.limits}

    def _option(self, parser: argparse.ArgumentParser, name: str, kind: Any) -> None:
        about = _description(kind)
        default = self.command.defaults.get(name)
        shown = "" if default is None else f" (default: {default})"
        if name == "user":
            add(parser, "user", about, shown=self.command.whose)
        elif name in _WINDOW:
            add(parser, _WINDOW[name], about, default=self.command.since if name == "start" else "now")
        elif _plain(kind) is int:
            parser.add_argument(f"--{name}", type=count_word, metavar="N", default=default, help=about + shown)
        elif get_origin(_plain(kind)) is Literal:
            words = get_args(_plain(kind))
            parser.add_argument(f"--{name}", choices=words, metavar=name.upper(), help=f"{about}: {', '.join(words)}")
        else:
            parser.add_argument(f"--{name}", metavar="NAME", help=about)

    def _query(self, options: argparse.Namespace, *, as_text: bool) -> dict[str, str | int]:
        from gpuwaste.cli.time_options import query_of

        given = {name: getattr(options, name) for name in self._fields if name not in _WINDOW}
        window = query_of(options.starttime, options.endtime) if "start" in self._fields else {}
        if self.command.limits:
            given["limit"] = self.command.limits[not as_text]
            window |= {"end": window["end"] + 1} if "end" in window else {}  # a row of that second is in the list
        return {name: value for name, value in given.items() if value is not None} | window


def _description(kind: Any) -> str:
    """Return the description of a field, "" for none."""
    if get_origin(kind) is not Annotated:
        return ""
    return next((note.description for note in get_args(kind)[1:] if note.description), "")


def _plain(kind: Any) -> Any:
    """Return the type of a field without its bounds, and without None."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return kind
    kinds = [one for one in get_args(kind) if one is not type(None)]
    return _plain(kinds[0]) if kinds else kind
