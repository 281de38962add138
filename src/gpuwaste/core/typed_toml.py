"""TOML as typed data: a table is a frozen dataclass, a key one of its fields; unknown keys are rejected.

A key is its field's name without a trailing underscore (`from_` is the key `from`). Each error names file, table and
key, and the nearest known key.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, get_type_hints

from gpuwaste.core.errors import ConfigError

Reader = Callable[[Any, str], Any]  # (value, where) -> the field's value; raises ConfigError
_LARGEST: Final = 2.0**63  # more than any key needs; TOML allows nan, inf and integers of any length
_PLAIN: Final[Mapping[Any, Reader]] = {}


def key(default: Any, text: str, site: Any = None) -> Any:
    """Declare a key: its default, its text in the reference, and `site`, an example where every site must check it."""
    metadata = {"text": text, "site": site}
    if isinstance(default, tuple | str | int | float | bool):
        return field(default=default, metadata=metadata)
    return field(default_factory=lambda: default, metadata=metadata)


def read_toml(path: Path) -> dict[str, Any]:
    """Return a parsed file. Raises ConfigError."""
    try:
        return parse_toml(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def toml_files(directory: Path) -> list[Path]:
    """Return the `*.toml` of a data directory, sorted by name, without hidden ones. Raises OSError."""
    return sorted(path for path in directory.iterdir() if path.suffix == ".toml" and path.name[0] != ".")


def read_data(path: Path, most: int, what: str) -> bytes:
    """Return a plain file of at most `most` bytes; `what` names it in errors. Raises ConfigError."""
    from gpuwaste.core.files import open_plain  # noqa: PLC0415 a command that reads its configuration needs none of it

    try:
        with open_plain(path) as file:
            data = file.read(most + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > most:
        raise ConfigError(f"{path}: over {most} bytes: too large for {what}")
    return data


def parse_toml(data: bytes, where: str) -> dict[str, Any]:
    """Return parsed TOML; `where` names it in errors. Raises ConfigError."""
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{where}: invalid TOML: {error}") from error


def read_table(kind: Any, data: Any, where: str, readers: Mapping[Any, Reader] = _PLAIN) -> Any:
    """Return a table as its dataclass; `readers`, by type, read types that TOML lacks. Raises ConfigError."""
    values, faults = read_keys(kind, data, where, readers)
    if faults:
        raise faults[0]
    return kind(**values)


def read_keys(
    kind: Any, data: Any, where: str, readers: Mapping[Any, Reader] = _PLAIN
) -> tuple[dict[str, Any], list[ConfigError]]:
    """Return the fields of a table that can be read, and an error for each key that cannot."""
    if not isinstance(data, dict):
        return {}, [ConfigError(f"{where} is not a table")]
    hints = {name.removesuffix("_"): (name, hint) for name, hint in get_type_hints(kind).items()}
    known = set(hints)
    faults = [ConfigError(f"{where} unknown key {name!r}{nearest(name, known)}") for name in data if name not in known]
    values = {}
    for name in (name for name in data if name in known):
        field_name, hint = hints[name]
        place = f"{where} {name}"
        try:
            value = data[name]
            values[field_name] = readers[hint](value, place) if hint in readers else plain_value(hint, value, place)
        except ConfigError as error:
            faults.append(error)
    return values, faults


def toml_value(value: Any) -> str:
    """Return a value in TOML syntax: a string, a number, a boolean, or a list of them."""
    import json  # noqa: PLC0415 only to print

    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML's escapes, except for DEL


def nearest(name: str, known: set[str]) -> str:
    """Return the end of an error about an unknown name: the nearest known name, else all."""
    import difflib  # noqa: PLC0415 only for an error

    close = difflib.get_close_matches(name, known, n=1)
    return f": did you mean {close[0]!r}?" if close else f": known are {', '.join(sorted(known))}"


def plain_value(kind: Any, value: Any, where: str) -> Any:
    """Return a value of a type that TOML has: bool, int, float, str, or tuple[str, ...]. Raises ConfigError."""
    if kind == tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise ConfigError(f"{where}: expected a list of strings, found {value!r}")
    if kind in {int, float} and isinstance(value, int | float) and not abs(value) < _LARGEST:
        raise ConfigError(f"{where}: {str(value)[:40]} is not a number in range")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise ConfigError(f"{where}: expected {kind.__name__}, found {value!r}")
    if kind in {int, float} and value < 0:
        raise ConfigError(f"{where}: {value} is negative")
    return value
