"""The modules of a source tree and the record types in them, read from their text."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

ROOTS: Final = ("src", "agent", "models")
RECORDS: Final = frozenset({"NamedTuple", "TypedDict", "Struct", "BaseModel"})
LEAST_FIELDS: Final = 5
LIKE: Final = 0.75


@dataclass(frozen=True)
class Module:
    """One file; its room is the folder below src/gpuwaste, or its root; `before`: lines before the first definition."""

    path: Path
    room: str
    lines: int
    before: int
    tree: ast.Module | None
    """None: SQL."""


@dataclass(frozen=True)
class ClassText:
    """One class as written: names of its bases, and its own annotated fields with their types."""

    name: str
    module: Module
    bases: tuple[str, ...]
    decorated: bool
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Record:
    """One record type with all its fields, each with the class that declares it."""

    text: ClassText
    fields: Mapping[str, str]
    family: frozenset[str]
    """Itself and the classes of ours that it derives from."""

    @classmethod
    def of(cls, family: list[ClassText]) -> "Record":
        """Return the last one with the fields of those before it."""
        owners = {name: each.name for each in family for name in each.fields}
        return cls(family[-1], owners, frozenset(each.name for each in family))

    def beside(self, other: "Record") -> frozenset[str]:
        """Return the names of the fields that it does not have from the same class as the other."""
        return frozenset(name for name, owner in self.fields.items() if other.fields.get(name) != owner)


def modules(root: Path) -> list[Module]:
    """Return the modules of Python and SQL below the source roots that are there."""
    files = [file for part in ROOTS for file in sorted((root / part).rglob("*")) if file.suffix in {".py", ".sql"}]
    return [_module(root, file) for file in files]


def classes(module: Module) -> Iterator[ClassText]:
    """Return the classes of a module, nested ones too."""
    for node in ast.walk(module.tree or ast.Module([], [])):
        if isinstance(node, ast.ClassDef):
            fields = {
                item.target.id: ast.unparse(item.annotation)
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            }
            yield ClassText(
                node.name,
                module,
                tuple(_bare(base) for base in node.bases),
                any(_bare(mark) == "dataclass" for mark in node.decorator_list),
                {name: kind for name, kind in fields.items() if "ClassVar" not in kind},
            )


def records(found: list[ClassText]) -> list[Record]:
    """Return the classes that are records by their decorator or a base, with the fields of their bases first."""
    known = {text.name: text for text in found}

    def line(text: ClassText) -> list[ClassText]:
        bases = [known[name] for name in text.bases if name in known and name != text.name]
        return [each for base in bases for each in line(base)] + [text]

    return [Record.of(family) for family in map(line, found) if _is_record(family)]


def like_pairs(found: list[Record]) -> list[tuple[Record, Record, int]]:
    """Return the pairs that share three quarters of the smaller one's fields, with how many.

    Fields that both have from one base do not count; nor does a pair of which a base of one is already a pair.
    """
    large = [record for record in found if len(record.fields) >= LEAST_FIELDS]
    pairs = []
    for one, other in combinations(large, 2):
        mine, its = one.beside(other), other.beside(one)
        smaller = min(len(mine), len(its))
        if smaller >= LEAST_FIELDS and len(mine & its) >= LIKE * smaller:
            pairs.append((one, other, len(mine & its)))
    known = {frozenset((one.text.name, other.text.name)) for one, other, _ in pairs}

    def of_bases(one: Record, other: Record) -> bool:
        met = {frozenset((mine, its)) for mine in one.family for its in other.family}
        return bool((met - {frozenset((one.text.name, other.text.name))}) & known)

    return [pair for pair in pairs if not of_bases(pair[0], pair[1])]


def _is_record(family: list[ClassText]) -> bool:
    return any(each.decorated or RECORDS & set(each.bases) for each in family)


def _module(root: Path, file: Path) -> Module:
    text, path = file.read_text(encoding="utf-8"), file.relative_to(root)
    below = path.parts[0] == "src" and len(path.parts) > len(("src", "gpuwaste", "NAME.py"))
    room = path.parts[2] if below else path.parts[0]
    if file.suffix == ".sql":
        return Module(path, room, text.count("\n"), 0, None)
    tree = ast.parse(text)
    lines = text.count("\n")
    first = next((_first_line(node) - 1 for node in tree.body if not _opening(node)), lines)
    return Module(path, room, lines, first, tree)


def _opening(node: ast.stmt) -> bool:
    """Return whether it is a docstring, an import, or `if TYPE_CHECKING` with imports alone."""
    if isinstance(node, ast.If):
        return all(_opening(inner) for inner in node.body)
    return isinstance(node, ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _first_line(node: ast.stmt) -> int:
    marks = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(mark.lineno for mark in marks)])


def _bare(node: ast.expr) -> str:
    """Return the last name of `module.Name(...)[...]`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
