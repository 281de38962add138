"""Expression: a condition of a rule as it is computed, each of its parts with its SQL."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpressionPart:
    """A condition that must hold, one of those that `&&` joins: its text, its SQL and the facts that it names."""

    text: str
    sql: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """A whole condition."""

    text: str
    sql: str
    names: tuple[str, ...]
    parts: tuple[ExpressionPart, ...]
