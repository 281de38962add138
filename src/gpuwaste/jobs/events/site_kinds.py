"""Kinds of events that a site declares in an inlet's file: a name, a sentence, and fields with their types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, Final

from gpuwaste.core.codec import Int64, Number
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import key, nearest, read_table
from gpuwaste.jobs.events.catalogue import catalogue
from gpuwaste.jobs.events.event_kind import EventKind
from gpuwaste.jobs.events.kinds.site import FromSite, Text, Texts

FAMILY: Final = "site."
TYPES: Final[Mapping[str, Any]] = {"text": Text, "texts": Texts, "number": Number, "whole": Int64, "flag": bool}
_MOST_FIELDS: Final = 32
_WORD: Final = re.compile(r"[a-z][a-z_]{0,31}")
_FIELD: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")


@dataclass(frozen=True, slots=True)
class KindTable:
    """Table [kind.NAME]."""

    about: str = key("", "What has happened, in a sentence.")
    fields: Mapping[str, str] = key({}, "The name of each field of `data`, and its type; with ? it may be left out.")


def read_kinds(data: Any, where: str) -> dict[str, EventKind]:
    """Return the kinds of an inlet's tables [kind.NAME] by their names, site.NAME. Raises ConfigError."""
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: [kind] is no table: write [kind.NAME]")
    return {FAMILY + name: _kind(name, table, f"{where}: [kind.{name:.40}]") for name, table in data.items()}


def _kind(word: str, data: Any, where: str) -> EventKind:
    name = FAMILY + word
    if not _WORD.fullmatch(word):
        raise ConfigError(f"{where}: the name of a kind: small letters and _, 32 at most")
    if name in catalogue():
        raise ConfigError(f"{where}: {name} has a type already: leave the table out, or use another name")
    table: KindTable = read_table(KindTable, data, where, {Mapping[str, str]: _texts})
    if not table.fields or len(table.fields) > _MOST_FIELDS:
        raise ConfigError(f"{where}: {len(table.fields)} fields: expected 1 to {_MOST_FIELDS}")
    parts = [_field(key_, kind, f"{where} fields") for key_, kind in table.fields.items()]
    made = make_dataclass("SiteData", parts, bases=(FromSite,), frozen=True, slots=True, kw_only=True)
    made.__doc__ = table.about
    return EventKind(name, table.about, made)


def _field(name: str, text: str, where: str) -> tuple[str, Any] | tuple[str, Any, Any]:
    taken = {one.name for one in fields(FromSite)}
    if not _FIELD.fullmatch(name) or name in taken:
        raise ConfigError(
            f"{where} {name!r:.60}: a field's name: small letters, digits and _, 32 at most, none of {sorted(taken)}"
        )
    word = text.removesuffix("?")
    if word not in TYPES:
        raise ConfigError(f"{where} {name}: no type {text!r:.40}{nearest(word, set(TYPES))}")
    return (name, TYPES[word]) if word == text else (name, TYPES[word] | None, field(default=None))


def _texts(value: Any, where: str) -> dict[str, str]:
    if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
        return value
    raise ConfigError(f'{where}: expected NAME = "TYPE" lines')
