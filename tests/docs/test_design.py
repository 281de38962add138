"""The pages on the code: each file, folder, class and room that they name is in the repository."""

import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "docs/design.md"
PAGES = [DESIGN, ROOT / "docs/explanation/interfaces.md", *sorted((ROOT / "docs/decisions").glob("0*.md"))]
FILE = re.compile(r"(?<![\w*/{}.-])((?:[\w.-]+/)*[\w-]+\.(?:py|sql|c|sh))\b")
FOLDER = re.compile(r"`([\w./-]+)/`")
CLASS = re.compile(r"\b(?:[A-Z][a-z0-9]+){2,}\b")
PLACEHOLDER = re.compile(r"NAME|NNNN|ROOM")
MADE = {".git", ".venv", "build", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache"}
OF_SLURM = {"NodeAddr"}


@cache
def tracked() -> tuple[str, ...]:
    """Return the paths of the repository's files; an unpacked archive has no git to list them."""
    found: list[str] = []
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in MADE]
        found += [str((Path(folder) / name).relative_to(ROOT)) for name in names]
    return tuple(found)


@cache
def classes() -> frozenset[str]:
    """Return the names of the classes of the code."""
    rooms = ("src/gpuwaste", "agent/gpuwaste", "models/gpuwaste", "testing/gpuwaste")
    texts = (path.read_text(encoding="utf-8") for room in rooms for path in (ROOT / room).rglob("*.py"))
    return frozenset(name for text in texts for name in re.findall(r"^\s*class (\w+)", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    """A file that is renamed is renamed on the page too; a path may leave out its first folders."""
    named = {name for name in FILE.findall(page.read_text(encoding="utf-8")) if not PLACEHOLDER.search(name)}
    assert {name for name in named if not any(path == name or path.endswith(f"/{name}") for path in tracked())} == set()


def test_folders_that_are_named_exist() -> None:
    """Each `folder/` of the design is one."""
    named = FOLDER.findall(DESIGN.read_text(encoding="utf-8"))
    assert len(named) > 10
    assert {name for name in named if not any(f"/{name}/" in f"/{path}" for path in tracked())} == set()


@pytest.mark.parametrize("page", PAGES[:2], ids=lambda page: page.name)
def test_classes_that_are_named_exist(page: Path) -> None:
    """Each name in the form of a class is a class of the code, or a word of Slurm's."""
    text = re.sub(r"\[[^\]]*\]\([^)]*\)", "", page.read_text(encoding="utf-8"))
    known = {form for name in classes() | OF_SLURM for form in (name, f"{name}s")}
    assert set(CLASS.findall(text)) - known == set()


def test_the_design_has_every_room() -> None:
    """The picture of the rooms names each folder of the code once."""
    (picture,) = re.findall(r"^```\n(cli .*?)^```$", DESIGN.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    folders = [path for room in ("src", "agent", "models") for path in (ROOT / room / "gpuwaste").iterdir()]
    rooms = {path.name for path in folders if path.is_dir() and path.name != "__pycache__"}
    assert {room for room in rooms if not re.search(rf"(?:^|  ){room}  ", picture, re.MULTILINE)} == set()
