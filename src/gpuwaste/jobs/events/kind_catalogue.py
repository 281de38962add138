"""Every kind of event by name: gpuwaste's catalogue, and the kinds that a site declares in an inlet's file.

A site's kind has a name, a sentence that describes it, and fields with their types.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from typing import Any, Final

from gpuwaste.core.codec import Int64, Number
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.typed_toml import key, nearest, read_table
from gpuwaste.jobs.events import kinds
from gpuwaste.jobs.events.event_kind import EventKind
from gpuwaste.jobs.events.kinds.site import FromSite, Text, Texts

PREFIX: Final = "gpuwaste."  # of an event's type
_PATTERN: Final = re.compile(r"[a-z_]{1,32}(?:\.[a-z_]{1,32}|\.\*)|\*")
FAMILY: Final = "site."
TYPES: Final[Mapping[str, Any]] = {"text": Text, "texts": Texts, "number": Number, "whole": Int64, "flag": bool}
_MOST_FIELDS: Final = 32
_WORD: Final = re.compile(r"[a-z][a-z_]{0,31}")
_FIELD: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")


@cache
def catalogue() -> Mapping[str, EventKind]:
    """Return each kind by its name, in the order of families and of their files."""
    return {kind.name: kind for module in ModuleRegistry[Any](kinds, "KINDS").values() for kind in module.KINDS}


def kinds_of(patterns: Sequence[str], where: str, site: Collection[str] = ()) -> frozenset[str]:
    """Return the kinds that match patterns: job.started, job.*, *; all without a pattern. Raises ConfigError.

    `site` are the kinds that the site's inlets declare, in addition to the catalogue.
    """
    found: set[str] = set()
    names = {*catalogue(), *site}
    for pattern in patterns or ("*",):
        if not _PATTERN.fullmatch(pattern):
            raise ConfigError(f"{where}: {pattern!r:.80}: expected a kind, such as job.started, FAMILY.* or *")
        head = pattern.removesuffix("*")
        taken = {name for name in names if (name.startswith(head) if pattern.endswith("*") else name == head)}
        if not taken:
            known = names | {f"{name.partition('.')[0]}.*" for name in names}
            raise ConfigError(f"{where}: no kind of event is called {pattern!r}{nearest(pattern, known)}")
        found |= taken
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class KindTable:
    """Table [kind.NAME]."""

    about: str = key("", "What has happened, in a sentence.")
    fields: Mapping[str, str] = key({}, "The name of each field of `data`, and its type; with ? it may be left out.")


def read_kinds(data: Any, where: str) -> dict[str, EventKind]:
    """Return the kinds of an inlet's tables [kind.NAME] by name, site.NAME. Raises ConfigError."""
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: [kind] is not a table: write [kind.NAME]")
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
