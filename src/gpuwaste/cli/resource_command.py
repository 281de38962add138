"""The command of a resource (show/resource.py): the fields of its question as options, its document as text or rows."""

import argparse
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin, get_type_hints

from gpuwaste.cli.options import add, add_config, add_forms, config_of, emit, typed
from gpuwaste.cli.words import count_word
from gpuwaste.core.errors import NoDataError
from gpuwaste.core.registry import ResourceFile

if TYPE_CHECKING:
    from gpuwaste.show.resource import ReadCommand, Resource

_WINDOW: Final = {"start": "starttime", "end": "endtime"}


class ResourceCommand:
    """What a module of a command has, for a file of resources: only its name and title are known until it runs."""

    def __init__(self, file: ResourceFile) -> None:
        self._file = file
        self.HELP = file.title[:1].lower() + file.title[1:].rstrip(".")
        self.__doc__ = file.title

    @property
    def EXAMPLES(self) -> tuple[tuple[str, str], ...]:  # noqa: N802 as a module of a command has it
        """Examples with what each does."""
        return tuple(self._command.examples)

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        for name, kind in self._fields.items():
            self._option(parser, name, kind)
        add_forms(parser)
        add_config(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Ask the hub and print its answer."""
        from gpuwaste.cli.hub_access import ask_hub

        raw = ask_hub(config_of(options), self._resource.path, self._query(options))
        document = typed(raw, self._resource.document, printed=options.form is None)
        rows = getattr(document, document.ROWS)
        if not rows and options.form is None:
            raise NoDataError(self._command.nothing)
        return emit(raw, document, options, self._command.text, empty=not rows, wasted=None)

    @cached_property
    def _resource(self) -> "Resource[Any, Any]":
        from gpuwaste.show.resource import Resource

        declared = self._file.module().RESOURCES
        return next(one for one in declared if isinstance(one, Resource) and one.command is not None)

    @property
    def _command(self) -> "ReadCommand[Any]":
        command = self._resource.command
        assert command is not None  # noqa: S101 as _resource has chosen it
        return command

    @cached_property
    def _fields(self) -> dict[str, Any]:
        return get_type_hints(self._resource.question, include_extras=True)

    def _option(self, parser: argparse.ArgumentParser, name: str, kind: Any) -> None:
        about = _description(kind)
        if name == "user":
            add(parser, "user", about)
        elif name in _WINDOW:
            add(parser, _WINDOW[name], about, default=self._command.since if name == "start" else "now")
        elif _plain(kind) is int:
            parser.add_argument(f"--{name}", type=count_word, metavar="N", help=about)
        else:
            parser.add_argument(f"--{name}", metavar="NAME", help=about)

    def _query(self, options: argparse.Namespace) -> dict[str, str | int]:
        from gpuwaste.cli.time_options import query_of

        given = {name: getattr(options, name, None) for name in self._fields if name not in _WINDOW}
        window = query_of(options.starttime, options.endtime) if "start" in self._fields else {}
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
    kinds = [one for one in get_args(kind) if one is not type(None)]
    return _plain(kinds[0]) if kinds else kind
