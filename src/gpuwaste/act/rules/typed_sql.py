"""Parts of an expression as SQL, each with its type: how they are compared, joined and converted.

A division by zero, an overflow and a result that is no finite number are unknown: NULL.
"""

import ast
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from gpuwaste.act.rules.rule_facts import FactType
from gpuwaste.core.errors import ConfigError

NUMBERS: Final = frozenset({"int", "double"})
_WORDS: Final[Mapping[str, str]] = {"bool": "true or false", "double": "a number with a point", "int": "an integer"}
Type = FactType | Literal["list"]


class Sql(NamedTuple):
    """A part of an expression: its type and text; `kind` is the type of a list's items, `items` are their texts."""

    type: Type
    text: str
    kind: FactType = "bool"
    items: tuple[str, ...] = ()


def expect(found: Sql, kind: Type, what: str) -> None:
    """Raise ConfigError unless a part has a type; `what` names it."""
    if found.type != kind:
        raise ConfigError(f"{what} is {word(found.type)}: expected {word(kind)}")


def check_comparable(left: Sql, right: Sql, *, ordered: bool) -> None:
    """Raise ConfigError unless two parts can be compared; `ordered`: by < and >."""
    same = left.type == right.type or {left.type, right.type} <= NUMBERS
    if not same or "list" in {left.type, right.type} or (ordered and left.type == "bool"):
        raise ConfigError(f"{word(left.type)} cannot be compared with {word(right.type)}")


def within(left: Sql, right: Sql) -> Sql:
    """Return whether one part is in a list; unknown if one item is unknown, as in CEL. Raises ConfigError."""
    expect(right, "list", "the right side of in")
    check_comparable(left, Sql(right.kind, ""), ordered=False)
    known = " AND ".join(f"{item} IS NOT NULL" for item in right.items)
    return Sql("bool", f"(CASE WHEN {known} THEN {left.text} IN ({', '.join(right.items)}) END)")


def arithmetic(left: Sql, sign: str, right: Sql) -> Sql:
    """Return two numbers joined by an SQL operator. Raises ConfigError."""
    if left.type not in NUMBERS or right.type not in NUMBERS:
        raise ConfigError(f"{word(left.type)} {sign} {word(right.type)}: expected numbers")
    if left.type != right.type:
        raise ConfigError(f"an integer {sign} a number with a point: write double(...) or 1.0 for 1")
    if left.type == "int":
        return Sql("int", f"TRY({left.text} {'//' if sign == '/' else sign} {right.text})")
    if sign == "%":
        raise ConfigError("%: expected integers")
    text = f"TRY({left.text} {sign} {right.text})"
    return Sql("double", f"(CASE WHEN isfinite({text}) THEN {text} END)")


def converted(found: Sql, name: str) -> Sql:
    """Return int() or double() of a number. Raises ConfigError."""
    if found.type not in NUMBERS:
        raise ConfigError(f"{name}() of {word(found.type)}: expected a number")
    if name == "double":
        return Sql("double", f"({found.text})::DOUBLE")
    return found if found.type == "int" else Sql("int", f"TRY_CAST(trunc({found.text}) AS BIGINT)")


def size(found: Sql) -> Sql:
    """Return the number of characters of a text. Raises ConfigError."""
    expect(found, "string", "what size() takes")
    return Sql("int", f"length({found.text})")


def quoted(text: str) -> str:
    """Return a CEL text as SQL's. Raises ConfigError."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise ConfigError(f"{text:.40}: not a valid escape: write r'...' for a pattern") from error
    if not isinstance(value, str) or "\x00" in value or any("\ud800" <= one <= "\udfff" for one in value):
        raise ConfigError(f"{text:.40}: a character that is not allowed in a text")
    return "'" + value.replace("'", "''") + "'"


def word(kind: Type) -> str:
    """Return the name of a type in errors."""
    return _WORDS.get(kind, f"a {'text' if kind == 'string' else kind}")
