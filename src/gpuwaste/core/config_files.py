"""The files of one configuration: gpuwaste.toml, its drop-ins, and the secrets that systemd hands to a service.

A drop-in of gpuwaste.toml.d holds the site's own keys, so that the packaged file stays as shipped and an upgrade never
prompts; drop-ins are read after it, in the order of their names. Each service has its own directory of secrets
(LoadCredential= and $CREDENTIALS_DIRECTORY, see systemd.exec(5)), which exists while it runs and only its user can
read.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import parse_toml, read_data, read_toml, toml_files

LARGEST: Final = 1 << 20
"""Most bytes of a drop-in."""
MOST: Final = 64
"""Most drop-ins of a configuration; the submit plugins have the same limit."""
_SCANNED_LINES: Final = 5000
_VARIABLE: Final = "CREDENTIALS_DIRECTORY"
CREDENTIALS: Final = f"${_VARIABLE}/"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ConfigLayer:
    """One parsed file: tables by section, not checked yet."""

    path: Path
    data: Mapping[str, Any]

    def has(self, section: str, key: str) -> bool:
        """Return whether this file sets a key."""
        return _sets(self.data, section, key)

    def place(self, section: str, key: str) -> str:
        """Return FILE:LINE of a key that this file sets; FILE where the line cannot be found."""
        number = _line_of(self.path, section, key)
        return f"{self.path}:{number}" if number else str(self.path)


def config_files(path: Path) -> list[Path]:
    """Return the file, which may be missing, and its drop-ins sorted by name. Raises ConfigError."""
    folder = path.with_name(f"{path.name}.d")
    try:
        found = toml_files(folder)
    except (FileNotFoundError, NotADirectoryError):
        return [path]
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read: {error.strerror}") from error
    if len(found) > MOST:
        raise ConfigError(f"{folder}: over {MOST} files: join some of them")
    return [path, *found]


def read_layers(path: Path, *, optional: bool = False) -> list[ConfigLayer]:
    """Return the parsed files, in the order in which they are read; `optional` allows the first one to be missing.

    Raises ConfigError.
    """
    found, faults = readable_layers(path, optional=optional)
    if faults:
        raise faults[0]
    return found


def readable_layers(path: Path, *, optional: bool = False) -> tuple[list[ConfigLayer], list[ConfigError]]:
    """Return the files that can be read, as `read_layers` does, and an error for each that cannot."""
    found: list[ConfigLayer] = []
    faults: list[ConfigError] = []
    try:
        files = config_files(path)
    except ConfigError as error:
        files, faults = [path], [error]
    for file in files:
        if file == path and optional and not file.exists():
            continue
        try:
            found.append(ConfigLayer(file, read_toml(file) if file == path else parse_toml(_read(file), str(file))))
        except ConfigError as error:
            faults.append(error)
    return found, faults


def merged(layers: Sequence[ConfigLayer]) -> dict[str, Any]:
    """Return one table for each section: for a key that several files set, the last one counts."""
    found: dict[str, Any] = {}
    for layer in layers:
        for section, table in layer.data.items():
            found[section] = {**found.get(section, {}), **table}
    return found


def place_of(layers: Sequence[ConfigLayer], section: str, key: str) -> str:
    """Return FILE:LINE of the value that counts; "" where no file sets the key."""
    return next((layer.place(section, key) for layer in reversed(layers) if layer.has(section, key)), "")


def _read(path: Path) -> bytes:
    return read_data(path, LARGEST, "a configuration file")


def _sets(data: Mapping[str, Any], section: str, key: str) -> bool:
    table = data.get(section)
    return isinstance(table, dict) and key in table


def _line_of(path: Path, section: str, key: str) -> int:
    """Return the line on which a key's statement begins, by parsing the lines before it and with it; 0 for unknown.

    The key's name inside a multi-line string, or in another section, does not count.
    """
    try:
        lines = _read(path).decode("utf-8").splitlines(keepends=True)
    except (ConfigError, UnicodeDecodeError):
        return 0
    name = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])")
    for at, line in enumerate(lines[:_SCANNED_LINES]):
        if name.search(line.partition("#")[0]) and _begins(lines, at, section, key):
            return at + 1
    return 0


def _begins(lines: Sequence[str], at: int, section: str, key: str) -> bool:
    """Return whether the statement that begins at a line sets the key."""
    before = _parsed(lines[:at])
    if before is None or _sets(before, section, key):
        return False
    ends = (_parsed(lines[: end + 1]) for end in range(at, min(at + MOST, len(lines))))
    return next((_sets(data, section, key) for data in ends if data is not None), False)


def _parsed(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        return parse_toml("".join(lines).encode("utf-8"), "")
    except ConfigError:
        return None


def expanded(text: str) -> str:
    """Return a value with the directory of this service's credentials filled in; unchanged in any other process."""
    directory = os.environ.get(_VARIABLE, "")
    return text.replace(CREDENTIALS, f"{directory}/") if directory.startswith("/") else text


def with_credentials(config: _T) -> _T:
    """Return a configuration in whose sections credentials are replaced by their paths in this service."""
    changed: dict[str, Any] = {}
    for section in fields(config):  # type: ignore[arg-type]
        table = getattr(config, section.name)
        texts = {key.name: getattr(table, key.name) for key in fields(table)}
        own = {name: expanded(text) for name, text in texts.items() if isinstance(text, str) and CREDENTIALS in text}
        if own:
            changed[section.name] = replace(table, **own)
    return replace(config, **changed) if changed else config  # type: ignore[type-var]
