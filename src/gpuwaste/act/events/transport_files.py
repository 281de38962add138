"""Outlets and inlets from files: a directory of TOML, one file for each; one of a file's tables sets the transport."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.site_files import folder_files, read_each
from gpuwaste.core.text import PLAIN_NAME
from gpuwaste.core.typed_toml import nearest, parse_toml, read_data, read_table

MAX_FILE_B: Final = 64 * 1024
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Transport(Generic[_T]):
    """The name of a file and its transport; `make` makes an outlet or an inlet from the settings of that transport."""

    name: str
    way: str
    make: Callable[[], _T]


@dataclass(frozen=True, slots=True)
class TransportFile(Transport[Any]):
    """A file as parsed, with its tables other than the transport's."""

    where: str
    tables: Mapping[str, Any]


def load_files(directory: Path, what: str, load: Callable[[Path], _T]) -> tuple[list[_T], list[ConfigError]]:
    """Return the results of `load` for a directory's `*.toml`, in order of names, and the errors of the others.

    A directory that does not exist has none; `what` they are: outlets, inlets.
    """
    try:
        return read_each(folder_files(directory, what, f"[hub] {what}_dir"), load)
    except ConfigError as error:
        return [], [error]


def read_way(path: Path, what: str, ways: Mapping[str, Any], tables: Collection[str]) -> TransportFile:
    """Return a file with one table of `ways` and any of `tables`; `what` it is (an outlet). Raises ConfigError."""
    where, title = str(path), path.name.removesuffix(".toml")
    if not PLAIN_NAME.fullmatch(title):
        word = what.rpartition(" ")[2]
        raise ConfigError(f"{where}: the file's name is the {word}'s: letters, digits, . _ and - only, 64 at most")
    parsed = parse_toml(read_data(path, MAX_FILE_B, what), where)
    known = {*tables, *ways}
    for name in parsed:
        if name not in known:
            raise ConfigError(f"{where}: unknown table [{name:.60}]{nearest(name, known)}")
    chosen = [name for name in parsed if name in ways]
    if len(chosen) != 1:
        raise ConfigError(f"{where}: expected one of {', '.join(f'[{way}]' for way in ways)}")
    way = chosen[0]
    module, place = ways[way], f"{where}: [{way}]"
    settings = read_table(module.SETTINGS, parsed[way], place)
    others = {name: parsed[name] for name in tables if name in parsed}
    return TransportFile(title, way, lambda: module.make(settings, place), where, others)
