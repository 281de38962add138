"""The figures of the house are those of its text."""

import textwrap
from pathlib import Path

import pytest
from tools.house import __main__ as house
from tools.house.modules import Record, classes, like_pairs, modules, records


def _write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text), encoding="utf-8")


def _records(root: Path) -> list[Record]:
    return records([text for module in modules(root) for text in classes(module)])


def _pairs(root: Path) -> list[tuple[str, str, int]]:
    return [(one.text.name, other.text.name, common) for one, other, common in like_pairs(_records(root))]


FIRST = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class One:
    KIND: ClassVar[str] = "one"
    a: int
    b: int
    c: int
    d: int
    e: int
"""


@pytest.mark.parametrize(
    ("other", "pairs"),
    [
        ("class Two(msgspec.Struct):\n a: int\n b: int\n c: int\n d: int\n z: int\n", [("One", "Two", 4)]),
        ("class Two(msgspec.Struct):\n a: int\n b: int\n c: int\n y: int\n z: int\n", []),
        ("class Two(NamedTuple):\n a: int\n b: int\n c: int\n d: int\n", []),
        ("class Two(Protocol):\n a: int\n b: int\n c: int\n d: int\n e: int\n", []),
        ("class Two(One):\n f: int\n", []),
        (
            "class Base(TypedDict):\n a: int\n b: int\n c: int\n d: int\n e: int\nclass Two(Base):\n f: int\n",
            [("One", "Base", 5)],
        ),
    ],
    ids=["four of five", "three of five", "too few fields", "no record", "derives", "a base is the pair already"],
)
def test_a_pair_shares_three_quarters_of_the_smaller_one(
    tmp_path: Path, other: str, pairs: list[tuple[str, str, int]]
) -> None:
    """What is a pair, and what is near it and is none."""
    _write(tmp_path, "src/gpuwaste/room/one.py", FIRST)
    _write(tmp_path, "src/gpuwaste/room/other.py", other)
    assert _pairs(tmp_path) == pairs


def test_fields_of_one_base_do_not_make_a_pair(tmp_path: Path) -> None:
    """Two types that both take their fields from one base are one shape, and are records as the base is."""
    derived = "class Two(One):\n f: int\n g: int\nclass Three(One):\n f: int\n g: int\n"
    _write(tmp_path, "src/gpuwaste/room/one.py", FIRST + derived)
    assert _pairs(tmp_path) == []
    assert {record.text.name: len(record.fields) for record in _records(tmp_path)} == {"One": 5, "Two": 7, "Three": 7}


def test_lines_are_counted_by_room(tmp_path: Path) -> None:
    """A room is a folder below src/gpuwaste, or another source root; a constant is a definition, an import is none."""
    _write(tmp_path, "src/gpuwaste/room/deep/one.py", '"""One."""\n\nimport os\n\nONE = os.name\n')
    _write(tmp_path, "src/gpuwaste/room/queries/one.sql", "SELECT 1\n")
    _write(tmp_path, "agent/gpuwaste/agent/two.py", "import functools\n\n@functools.cache\ndef two(): ...\n")
    _write(tmp_path, "models/gpuwaste/models/__init__.py", '"""Training."""\n')
    found = {(module.room, module.path.name): (module.lines, module.before) for module in modules(tmp_path)}
    assert found == {
        ("room", "one.py"): (5, 4),
        ("room", "one.sql"): (1, 0),
        ("agent", "two.py"): (4, 2),
        ("models", "__init__.py"): (1, 1),
    }


def test_what_is_told_twice_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names used twice count in each room that has them; the spellings of the run key are those of record types."""
    key = "class Key(NamedTuple):\n job_id: int\n start: int\n"
    other = (
        "class Key(NamedTuple):\n jobid: int\n run_start: int\nclass Shown(NamedTuple):\n job: str\n job_count: int\n"
    )
    _write(tmp_path, "src/gpuwaste/left/same.py", FIRST + key)
    _write(tmp_path, "src/gpuwaste/right/same.py", FIRST.replace("One", "Other") + other)
    assert house.main(["--root", str(tmp_path), "--pairs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:5]}
    assert rows["left"][4:] == ["1", "2", "1", "1"]
    assert rows["right"][4:] == ["1", "3", "1", "1"]
    assert lines[4].split()[-4:] == ["1", "5", "1", "1"]
    assert lines[5:] == [
        "job_id is spelled: job_id (1), jobid (1)",
        "start is spelled: start (1), run_start (1)",
        "printed_id is spelled: job (1)",
        "One src/gpuwaste/left/same.py (5) | Other src/gpuwaste/right/same.py (5) | 5 alike",
    ]
