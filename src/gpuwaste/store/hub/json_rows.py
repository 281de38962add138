"""Rows for the hub's store: JSON arrays, which DuckDB reads a hundred times faster than bound values.

The columns of a record follow from its declaration.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin

from gpuwaste.core.codec import KeyColumn, PartColumn, annotated
from gpuwaste.core.text import storable

NO_ROWS: Final = "[]"
_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # but not of a text that has these six characters
_R = TypeVar("_R")
_Write = Callable[[Any], dict[str, Any]]
_TYPES: Final = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}


def to_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the rows as one JSON array, each NUL as `storable` writes it. Raises ValueError for a NaN."""
    text = json.dumps(list(rows), allow_nan=False, separators=(",", ":"))
    return _NUL.sub(r"\1\\\\x00", text) if "\\u0000" in text else text


class Columns(Generic[_R]):
    """The columns of a table for one type of record: DuckDB's type by column, and a record's row.

    A compound value (a run key) has a column for each part, a map with a `KeyColumn` two lists, a map of maps its JSON.
    `more` are columns that the caller adds to the rows.
    """

    def __init__(self, record: type[_R], more: Mapping[str, str] | None = None) -> None:
        self.types: dict[str, Any] = {}
        names, self._texts, self._others = [], [], list[tuple[str, _Write]]()
        for field, kind, marks in annotated(record):
            plain = _plain(kind)
            if plain in _TYPES:
                names.append(field.name)
                self.types[field.name] = _TYPES[plain]
                self._texts += [field.name] if plain is str else []
            else:
                types, write = _several(field.name, plain, next((m for m in marks if isinstance(m, KeyColumn)), None))
                self.types |= types
                self._others.append((field.name, write))
        self._names: Final = tuple(names)
        self._values: Final = attrgetter(*names)
        self.types |= more or {}
        self.shape: Final = json.dumps([self.types])  # for DuckDB's from_json

    def row(self, record: _R) -> dict[str, Any]:
        """Return a record's columns."""
        row = dict(zip(self._names, self._values(record), strict=True))
        for name in self._texts:
            text = row[name]
            if text is not None and (not text.isascii() or "\0" in text):
                row[name] = storable(text)
        for name, write in self._others:
            row |= write(getattr(record, name))
        return row


def _plain(kind: Any) -> Any:
    """Return the type without its annotations and None; a Literal of texts becomes a text."""
    while get_origin(kind) in {Annotated, Union, UnionType}:
        kind = next(part for part in get_args(kind) if part is not type(None))
    return str if get_origin(kind) is Literal else kind


def _several(name: str, kind: Any, keys: KeyColumn | None) -> tuple[dict[str, Any], _Write]:
    """Return the columns of a compound field, and the functions that make their values."""
    if isinstance(kind, type) and is_dataclass(kind):
        return _parts(kind)
    parts = [_plain(part) for part in get_args(kind)]
    if keys is not None:
        return {keys.name: [_TYPES[parts[0]]], name: [_TYPES[parts[1]]]}, lambda found: {
            keys.name: sorted(found), name: [found[key] for key in sorted(found)],
        }  # fmt: skip
    if get_origin(kind) is tuple:
        return {name: [_TYPES[parts[0]]]}, lambda texts: {name: [storable(text) for text in texts]}
    if parts[1] in _TYPES:
        column = f"MAP(VARCHAR, {_TYPES[parts[1]]})"
        return {name: column}, lambda found: {name: {storable(key): value for key, value in found.items()}}
    return {name: "VARCHAR"}, lambda found: {name: storable(json.dumps(found))}


def _parts(kind: type[Any]) -> tuple[dict[str, Any], _Write]:
    """Return the columns of the parts of a compound value, and the functions that make their values."""
    parts = [(part.name, _TYPES[_plain(of)], marks) for part, of, marks in annotated(kind)]
    types = {next((m.name for m in marks if isinstance(m, PartColumn)), name): of for name, of, marks in parts}
    values = attrgetter(*(name for name, *_ in parts))
    return types, lambda whole: dict(zip(types, values(whole), strict=True))
