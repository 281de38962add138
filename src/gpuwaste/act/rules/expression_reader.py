"""Reads a condition of a rule, in CEL, checked against the facts and translated to SQL.

cel-python parses the text (https://github.com/google/cel-spec, langdef.md); DuckDB computes it for all subjects at
once. Unknown is NULL: SQL's AND, OR and NOT treat NULL as CEL treats an error, so that a condition holds only if the
known facts are enough. There are no loops: CEL's macros over lists are rejected. Imported only where a rule is read:
the parser takes a tenth of a hub's start.
"""

from collections.abc import Mapping
from typing import Final

from celpy.celparser import CELParseError, CELParser
from lark import Token, Tree

from gpuwaste.act.rules.cel_sql import Translator
from gpuwaste.act.rules.rule_definition import Expression, ExpressionPart
from gpuwaste.act.rules.rule_facts import FactType
from gpuwaste.core.errors import ConfigError

MAX_TEXT: Final = 2000  # characters
MAX_DEPTH: Final = 40  # parentheses and brackets within one another


def read_expression(text: str, facts: Mapping[str, FactType]) -> Expression:
    """Return a condition. Raises ConfigError with the error, without the file."""
    _check_size(text)
    try:
        tree = CELParser().parse(text)
    except CELParseError as error:
        raise ConfigError(f"not CEL at character {error.column or len(text)}: {_near(text, error.column)}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not CEL: {str(error)[:80]}") from error
    translator = Translator(facts)
    sql = translator.condition(tree)
    parts = []
    for part in _joined(tree):
        own = Translator(facts)
        parts.append(ExpressionPart(_text_of(text, part), own.condition(part), tuple(own.names)))
    return Expression(text, sql, tuple(translator.names), tuple(parts))


def _check_size(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise ConfigError(f"{len(text)} characters, {MAX_TEXT} at most: split the rule")
    if not text.strip():
        raise ConfigError("empty")
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise ConfigError(f"{deepest} parentheses within one another, {MAX_DEPTH} at most")


def _near(text: str, column: int | None) -> str:
    place = max(0, (column or 1) - 1)
    return repr(text[place : place + 20]) if text[place:].strip() else "it ends too early"


def _joined(tree: Tree[Token]) -> list[Tree[Token]]:
    """Return the operands of `&&` at the top, in order; the entire tree if there is no `&&`."""
    while len(tree.children) == 1 and isinstance(tree.children[0], Tree) and tree.data != "conditionaland":
        tree = tree.children[0]
    found: list[Tree[Token]] = []
    while tree.data == "conditionaland" and len(tree.children) == 2:  # noqa: PLR2004 the two sides
        left, right = (child for child in tree.children if isinstance(child, Tree))
        found.append(right)
        tree = left
    return [tree, *reversed(found)]


def _text_of(text: str, tree: Tree[Token]) -> str:
    return text[tree.meta.start_pos : tree.meta.end_pos].strip()
