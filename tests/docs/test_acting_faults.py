"""The page of faults of rules and actions: each test that it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "acting-faults.md"
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))))


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of a module's tests."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_each_fault_has_its_test(path: str, name: str) -> None:
    """A test that is renamed is renamed on the page too."""
    assert name in functions_of(path)


def test_each_row_names_a_test() -> None:
    """No fault is told of without one."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    assert all("::test_" in row for row in rows)
