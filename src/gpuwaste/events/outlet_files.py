"""Outlets from files: a directory of TOML, one file an outlet; its name is the file's."""

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import key, nearest, parse_toml, read_data, read_table, toml_files
from gpuwaste.events import outlets as ways_out
from gpuwaste.events.catalogue import kinds_of
from gpuwaste.events.outlet import Outlet

MAX_FILE_B: Final = 64 * 1024
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_BEGINNINGS: Final = ("now", "oldest")


@dataclass(frozen=True, slots=True)
class OutletTable:
    """Table [outlet]."""

    events: tuple[str, ...] = key((), "Kinds of events: job.started, job.*; empty: all.")
    begin: str = key("now", "Where a new outlet begins: now, or oldest, the first event that the hub has.")


@dataclass(frozen=True, slots=True)
class OutletFile:
    """One outlet as its file declares it."""

    name: str
    way: str
    kinds: frozenset[str]
    begin: str
    make: Callable[[], Outlet]


def load_outlets(directory: Path) -> tuple[list[OutletFile], list[ConfigError]]:
    """Return the outlets of a directory's `*.toml` in the order of their names, and what is wrong with the others.

    A directory that is not there has none.
    """
    try:
        found = toml_files(directory)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [ConfigError(f"{directory}: outlets cannot be read: {error.strerror}: see [hub] outlets_dir")]
    outlets: list[OutletFile] = []
    errors: list[ConfigError] = []
    for path in found:
        try:
            outlets.append(load_outlet(path))
        except ConfigError as error:
            errors.append(error)
    return outlets, errors


def load_outlet(path: Path) -> OutletFile:
    """Return the outlet of a file. Raises ConfigError."""
    where, title = str(path), path.name.removesuffix(".toml")
    if not _NAME.fullmatch(title):
        raise ConfigError(f"{where}: the file's name is the outlet's: letters, digits, . _ and - only, 64 at most")
    parsed = parse_toml(read_data(path, MAX_FILE_B, "an outlet"), where)
    known = {"outlet", *ways()}
    for name in parsed:
        if name not in known:
            raise ConfigError(f"{where}: unknown table [{name:.60}]{nearest(name, known)}")
    chosen = [name for name in parsed if name != "outlet"]
    if len(chosen) != 1:
        raise ConfigError(f"{where}: expected one of {', '.join(f'[{way}]' for way in ways())}")
    table: OutletTable = read_table(OutletTable, parsed.get("outlet", {}), f"{where}: [outlet]")
    if table.begin not in _BEGINNINGS:
        raise ConfigError(f"{where}: [outlet] begin {table.begin!r:.40}: expected {' or '.join(_BEGINNINGS)}")
    way = chosen[0]
    module, place = ways()[way], f"{where}: [{way}]"
    settings = read_table(module.SETTINGS, parsed[way], place)
    kinds = kinds_of(table.events, f"{where}: [outlet] events")
    return OutletFile(title, way, kinds, table.begin, lambda: module.make(settings, place))


@cache
def ways() -> dict[str, Any]:
    """Return the module of each way to hand events over, by the name of its table."""
    names = sorted(module.name for module in pkgutil.iter_modules(ways_out.__path__))
    return {name: importlib.import_module(f"{ways_out.__name__}.{name}") for name in names}
