"""Translator: the tree of a CEL expression → its type and its SQL, with every name and type checked.

The rules of the tree are those of cel-python's grammar (celpy/cel.lark). As in CEL, an integer and a number with a
point can be compared, but not added: double() and int() convert. A result that is no finite number is unknown.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from lark import Token, Tree

from gpuwaste.act.rules.rule_facts import FactType
from gpuwaste.act.rules.typed_sql import (
    NUMBERS,
    Sql,
    arithmetic,
    check_comparable,
    converted,
    expect,
    quoted,
    size,
    within,
    word,
)
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import nearest

MAX_DEPTH: Final = 60  # of operators within one another
MAX_SQL: Final = 20_000  # characters: some operators repeat their operands
_FAR: Final = 2**63
_COMPARED: Final = {
    "relation_lt": "<",
    "relation_le": "<=",
    "relation_gt": ">",
    "relation_ge": ">=",
    "relation_eq": "=",
    "relation_ne": "<>",
}
_COUNTED: Final = {
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_mul": "*",
    "multiplication_div": "/",
    "multiplication_mod": "%",
}
_TEXTS: Final = {"startsWith": "starts_with", "endsWith": "ends_with", "contains": "contains"}
_METHODS: Final = frozenset({*_TEXTS, "matches", "size"})
_FUNCTIONS: Final = frozenset({"has", "size", "int", "double"})
_MACROS: Final = frozenset({"all", "exists", "exists_one", "map", "filter", "reduce", "min"})


class Translator:
    """Translates one expression; `names` are the facts that it names, in order."""

    def __init__(self, facts: Mapping[str, FactType]) -> None:
        self._facts = facts
        self._spaces = {name.partition(".")[0] for name in facts}
        self.names: list[str] = []

    def condition(self, tree: Tree[Token]) -> str:
        """Return the SQL of a tree that must be boolean. Raises ConfigError."""
        found = self._sql(tree, 0)
        if found.type != "bool":
            raise ConfigError(f"is {word(found.type)}, expected a condition such as ledger.idle_s >= 1800.0")
        return found.text

    def _sql(self, tree: Tree[Token], depth: int) -> Sql:
        if depth > MAX_DEPTH:
            raise ConfigError(f"{MAX_DEPTH} operators within one another at most: split the rule")
        while len(tree.children) == 1 and isinstance(tree.children[0], Tree) and tree.data in _PLAIN:
            tree = tree.children[0]
        handler = getattr(self, f"_{tree.data}", None)
        if handler is None:
            raise ConfigError(f"{_place(tree)}: not supported in rules")
        found: Sql = handler(tree, depth + 1)
        if len(found.text) > MAX_SQL:
            raise ConfigError("too many + - * / of numbers with a point, ?: or in within one another: split the rule")
        return found

    def _expr(self, tree: Tree[Token], depth: int) -> Sql:
        condition, first, second = (self._sql(child, depth) for child in _trees(tree))
        expect(condition, "bool", "the condition before ?")
        if first.type != second.type:
            raise ConfigError(f"? and : give {word(first.type)} and {word(second.type)}: expected the same type")
        given = f"CASE WHEN {condition.text} THEN {first.text} WHEN NOT {condition.text} THEN {second.text} END"
        return Sql(first.type, f"({given})", first.kind)

    def _conditionalor(self, tree: Tree[Token], depth: int) -> Sql:
        return self._joined(tree, depth, "OR", "||")

    def _conditionaland(self, tree: Tree[Token], depth: int) -> Sql:
        return self._joined(tree, depth, "AND", "&&")

    def _joined(self, tree: Tree[Token], depth: int, joint: str, sign: str) -> Sql:
        rule, sides = tree.data, []
        while tree.data == rule and len(tree.children) == 2:  # noqa: PLR2004 the two sides
            left, right = _trees(tree)
            sides.append(right)
            tree = left
        parts = [self._sql(side, depth) for side in [tree, *reversed(sides)]]
        for part in parts:
            expect(part, "bool", f"a side of {sign}")
        return Sql("bool", "(" + f" {joint} ".join(part.text for part in parts) + ")")

    def _relation(self, tree: Tree[Token], depth: int) -> Sql:
        operator, second = _trees(tree)
        left, right = self._sql(_trees(operator)[0], depth), self._sql(second, depth)
        if operator.data == "relation_in":
            return within(left, right)
        check_comparable(left, right, ordered=operator.data not in {"relation_eq", "relation_ne"})
        return Sql("bool", f"({left.text} {_COMPARED[operator.data]} {right.text})")

    def _addition(self, tree: Tree[Token], depth: int) -> Sql:
        operator, second = _trees(tree)
        left, right = self._sql(_trees(operator)[0], depth), self._sql(second, depth)
        if operator.data == "addition_add" and left.type == right.type == "string":
            return Sql("string", f"({left.text} || {right.text})")
        return arithmetic(left, _COUNTED[operator.data], right)

    def _multiplication(self, tree: Tree[Token], depth: int) -> Sql:
        operator, second = _trees(tree)
        left, right = self._sql(_trees(operator)[0], depth), self._sql(second, depth)
        return arithmetic(left, _COUNTED[operator.data], right)

    def _unary(self, tree: Tree[Token], depth: int) -> Sql:
        sign, value = _trees(tree)
        found = self._sql(value, depth)
        if sign.data == "unary_not":
            expect(found, "bool", "what ! negates")
            return Sql("bool", f"(NOT {found.text})")
        if found.type not in NUMBERS:
            raise ConfigError(f"- before {word(found.type)}: expected a number")
        return Sql(found.type, f"TRY(-{found.text})")

    def _paren_expr(self, tree: Tree[Token], depth: int) -> Sql:
        return self._sql(_trees(tree)[0], depth)

    def _ident(self, tree: Tree[Token], depth: int) -> Sql:
        del depth
        name = str(tree.children[0])
        if name in self._spaces:
            raise ConfigError(f"{name} is a group of facts: write {name}.NAME")
        raise ConfigError(f"unknown name {name!r:.80}{self._hint(name)}")

    def _member_dot(self, tree: Tree[Token], depth: int) -> Sql:
        del depth
        name = _dotted(tree)
        if name not in self._facts:
            raise ConfigError(f"unknown fact {name!r:.80}{self._hint(name)}")
        if name not in self.names:
            self.names.append(name)
        return Sql(self._facts[name], f'"{name}"')

    def _hint(self, name: str) -> str:
        space = name.partition(".")[0]
        near = difflib.get_close_matches(name, self._facts, n=1)
        if near or space not in self._spaces:
            return f": did you mean {near[0]!r}?" if near else nearest(space, self._spaces)
        return nearest(name, {one for one in self._facts if one.startswith(f"{space}.")})

    def _ident_arg(self, tree: Tree[Token], depth: int) -> Sql:
        name, given = str(tree.children[0]), _arguments(tree)
        if name not in _FUNCTIONS:
            raise ConfigError(f"unknown function {name!r:.40}{nearest(name, set(_FUNCTIONS | _METHODS))}")
        if len(given) != 1:
            raise ConfigError(f"{name}(): expected one argument")
        found = self._sql(given[0], depth)
        if name == "has":
            if not re.fullmatch(r'"[\w.]+"', found.text):
                raise ConfigError("has(): expected a fact, such as has(prediction.failure)")
            return Sql("bool", f"({found.text} IS NOT NULL)")
        return size(found) if name == "size" else converted(found, name)

    def _member_dot_arg(self, tree: Tree[Token], depth: int) -> Sql:
        owner, name, given = _trees(tree)[0], str(tree.children[1]), _arguments(tree)
        if name in _MACROS:
            raise ConfigError(f"{name}(): macros over lists are not supported in rules")
        if name not in _METHODS:
            raise ConfigError(f"unknown function {name!r:.40}{nearest(name, set(_METHODS))}")
        found = self._sql(owner, depth)
        if name == "size":
            return size(found)
        expect(found, "string", f"the text before .{name}()")
        if len(given) != 1:
            raise ConfigError(f"{name}(): expected one text")
        text = self._sql(given[0], depth)
        expect(text, "string", f"what {name}() takes")
        if name == "matches":
            if not text.text.startswith("'"):
                raise ConfigError("matches(): expected a pattern in quotes")
            return Sql("bool", f"regexp_matches({found.text}, {text.text})")
        return Sql("bool", f"{_TEXTS[name]}({found.text}, {text.text})")

    def _list_lit(self, tree: Tree[Token], depth: int) -> Sql:
        items = [self._sql(one, depth) for one in _arguments(tree)]
        if not items or len({item.type for item in items}) > 1 or items[0].type == "list":
            raise ConfigError("a list: expected items of one type, at least one")
        kind: FactType = items[0].type
        texts = tuple(item.text for item in items)
        return Sql("list", ", ".join(texts), kind, texts)

    def _literal(self, tree: Tree[Token], depth: int) -> Sql:
        del depth
        token = tree.children[0]
        assert isinstance(token, Token)  # noqa: S101 narrows the type; the grammar has nothing else here
        text = str(token)
        if token.type == "BOOL_LIT":
            return Sql("bool", text)
        if token.type == "INT_LIT":
            value = int(text, 16 if "x" in text else 10)
            if not -_FAR <= value < _FAR:
                raise ConfigError(f"{text:.40}: out of range")
            return Sql("int", f"({value})::BIGINT")
        if token.type == "FLOAT_LIT":
            if abs(float(text)) >= _FAR:
                raise ConfigError(f"{text:.40}: out of range")
            return Sql("double", f"({float(text)!r})::DOUBLE")
        if token.type in {"STRING_LIT", "MLSTRING_LIT"}:
            return Sql("string", quoted(text))
        raise ConfigError(f"{text:.40}: not supported in rules")


_PLAIN: Final = frozenset(
    {"expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary", "member", "primary"}
)


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _arguments(tree: Tree[Token]) -> Sequence[Tree[Token]]:
    lists = [child for child in _trees(tree) if child.data == "exprlist"]
    return _trees(lists[0]) if lists else ()


def _dotted(tree: Tree[Token]) -> str:
    """Return the full name of a member: a group of facts and one of its names."""
    names: list[str] = []
    while True:
        if tree.data == "member_dot":
            names.append(str(tree.children[1]))
            tree = _trees(tree)[0]
        elif tree.data == "ident":
            return ".".join([str(tree.children[0]), *reversed(names)])
        elif tree.data in _PLAIN and len(tree.children) == 1 and isinstance(tree.children[0], Tree):
            tree = tree.children[0]
        else:
            raise ConfigError(f".{names[-1]:.40}: expected a fact, such as job.gpus")


def _place(tree: Tree[Token]) -> str:
    return str(tree.data).replace("_", " ")
