"""What the code says, read without running it: calls with their words, a place for each value in them."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SHIPPED: Final = ("src/gpuwaste", "agent/gpuwaste", "models/gpuwaste")


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield (name below gpuwaste, syntax) of the shipped modules, or of those below some folders."""
    for folder in folders or SHIPPED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[parts.index("gpuwaste") + 1 :])
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield each call, in the order of the text."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    yield from sorted(found, key=lambda call: (call.lineno, call.col_offset))


def called(call: ast.Call) -> str:
    """Return the dotted name of what is called, "" where it has none."""
    return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""


def called_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, in small letters: a level's."""
    return node.attr.lower() if isinstance(node, ast.Attribute) else ast.unparse(node).lower()


def words(node: ast.expr) -> str:
    """Return a text with {} for each value in it; {} alone where the text is made elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(words(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return words(node.left) + words(node.right)
    if isinstance(node, ast.IfExp):
        return f"{words(node.body)} | {words(node.orelse)}"
    return "{}"


def filled(text: str) -> str:
    """Return logging's own form of a text, with {} for its %s and %d."""
    for form in ("%s", "%d", "%r", "%g"):
        text = text.replace(form, "{}")
    return text


def argument(call: ast.Call, place: int, name: str = "") -> ast.expr | None:
    """Return an argument by its place or name."""
    named: Sequence[ast.expr] = [keyword.value for keyword in call.keywords if keyword.arg == name]
    if named:
        return named[0]
    return call.args[place] if place < len(call.args) else None
