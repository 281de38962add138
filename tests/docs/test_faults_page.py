"""The fault table: each declared fault has a test that exists, each test of the module a row, each row is of today."""

import ast
from pathlib import Path

from tests.system.fault_cases import CASES, MODULE, read_measured
from tools.reference import faults

ROOT = Path(__file__).parents[2]


def declared_in(path: str) -> set[str]:
    """Return the names of a module's tests."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_each_fault_is_shown_by_a_test_and_each_test_shows_a_fault() -> None:
    """The declared tests are exactly those of the module."""
    assert {case.test for case in CASES.values()} == declared_in(MODULE)


def test_each_fault_has_its_rows() -> None:
    """The page names each fault with its test, and again with what was measured."""
    page = faults.page()
    for case in CASES.values():
        assert page.count(f"| {case.fault} |") == 2, case.key
        assert f"| `{case.test}` |" in page


def test_what_was_measured_is_of_declared_faults_and_lost_nothing() -> None:
    """No row is left over of a fault that is declared no more; one without a row is said to be not measured."""
    measured = read_measured()
    assert set(measured) <= set(CASES), "make faults"
    assert faults.page().count("| not measured |") == len(CASES) - len(measured)
    assert all(row.submissions > 0 for row in measured.values())
