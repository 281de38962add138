"""doctor.md, from the checks: each line that can come out as a warning or a failure, with how it is mended."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from gpuwaste.cli.doctor_checks import modules
from tools.reference import source
from tools.reference.markdown import code, document, table

_FOLDER: Final = "src/gpuwaste/cli/checks"
_INTRO: Final = """
Every warning and failure of `gpuwaste doctor`, in the order of its output; `{}` stands for a value. Where another
program failed, the line contains that program's error. `not finished within {} s` is possible for every check: what it
queries does not answer. What each check covers: [the doctor](../how-to/doctor.md).
"""
_STATUS: Final = {"Status.WARN": "warn", "Status.FAIL": "fail"}
_SELF: Final = "see the text"


class Line(NamedTuple):
    """One call of Check that is not always ok."""

    name: str
    status: str
    found: str
    mend: str


def lines(tree: ast.Module) -> Iterator[Line]:
    """Yield the lines of one check's module."""
    place = list(_texts(tree.body))
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        own = [*place, *_texts(ast.walk(function))]
        for call in source.calls(function):
            known = {name: text for line, name, text in own if line < call.lineno or (line, name, text) in place}
            status = _status(call) if source.called(call) == "Check" else ""
            if status:
                texts = [_words(source.argument(call, *at), known) for at in ((0, "name"), (2, "found"), (3, "mend"))]
                yield Line(texts[0], status, texts[1] or "{}", texts[2])


def page() -> str:
    """Return the page: a table for each check."""
    trees = {name.rpartition(".")[2]: tree for name, tree in source.modules(_FOLDER)}
    parts = [_INTRO]
    for module in modules():
        found = list(lines(trees[module.__name__.rpartition(".")[2]]))
        if not found:
            continue
        roles = ", ".join(sorted(module.ROLES))
        parts.append(f"## {module.NAME}\n\n{module.__doc__}\n\nOn hosts of: {roles}.")
        rows = [(code(row.name), row.status, row.found, row.mend or _SELF) for row in found]
        parts.append(table(("line", "status", "what was found", "what to do"), rows))
    return document("Lines of the doctor", *parts)


def _status(call: ast.Call) -> str:
    """Return warn, fail or both; "" where the line is ok only."""
    node = source.argument(call, 1, "status")
    text = ast.unparse(node) if node is not None else ""
    if text == "status":
        return "warn"
    return " or ".join(word for name, word in _STATUS.items() if name in text)


def _texts(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str, str]]:
    """Yield (line, name, text) of each text that gets a name."""
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            text = _words(node.value, {})
            if isinstance(target, ast.Name) and text.strip("{} "):
                yield node.lineno, target.id, text


def _words(node: ast.expr | None, known: Mapping[str, str]) -> str:
    """Return a text, with the names in it as what they stand for."""
    if node is None:
        return ""
    if isinstance(node, ast.Name):
        return known.get(node.id, "{}")
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.FormattedValue) else part for part in node.values)
        return "".join(_words(part, known) if not isinstance(part, ast.Constant) else str(part.value) for part in parts)
    if isinstance(node, ast.IfExp):
        return " or ".join(filter(None, (_words(node.body, known), _words(node.orelse, known))))
    return source.words(node)
