"""docs/explanation/security.md: every threat has tests that exist, and no line of the list is missing."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from gpuwaste.core.thread_pool import REPORTS_AT_ONCE
from gpuwaste.hub.admission_control import MOST
from gpuwaste.hub.exchange import REPORTS_OF_USER
from gpuwaste.hub.protocol import BOUNDS

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs/explanation/security.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.partition("## Threats")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and "::" in line
]
REQUIRED = (
    "user reads others' jobs through the API",
    "user reads others' jobs through a Unix socket",
    "user reads others' jobs in /metrics on a shared node",
    "user reads others' jobs in files",
    "user forges hours",
    "Flooding the agent's sockets",
    "Flooding the hub's sockets",
    "Flooding the advisor's sockets",
    "Symlink and permission tricks under /run",
    "Symlink and permission tricks under /var/lib",
    "malicious job name in CSV",
    "malicious job name on the terminal",
    "malicious job name in logs",
    "malicious job name in mail headers",
    "Path traversal",
    "Oversized HTTP",
    "Slow HTTP",
    "Replayed credentials",
    "tampered bundle",
    "changed dependency",
)


@cache
def found_in(file: str) -> frozenset[str]:
    """Return the tests of a file below tests; none where there is no such file."""
    path = TESTS / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_threat_has_tests_that_exist(row: list[str]) -> None:
    """A row names the threat, what stops it, and at least one test of this tree."""
    threat, stops, named = row
    assert threat
    assert stops
    tests = [name.strip().partition("::") for name in named.split(",")]
    assert tests
    for file, _, test in tests:
        assert test in found_in(file), f"{file}::{test}"


def test_every_threat_is_in_the_table_of_threats() -> None:
    """No row with tests is below another heading, where no reader looks for it and no test reads it."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and ".py::test_" in line]
    assert len(rows) == len(ROWS)


@pytest.mark.parametrize("threat", REQUIRED)
def test_each_line_of_the_list_has_a_row(threat: str) -> None:
    """The threats that the product was asked to hold out against."""
    assert [row for row in ROWS if threat in row[0]] != []


def test_each_test_of_threats_stands_in_the_table() -> None:
    """A test that was written for a threat is named, so that nobody takes it for one that may go."""
    named = set(re.findall(r"[\w/]+\.py::\w+", PAGE))
    for path in sorted(TESTS.glob("system/test_threats*.py")):
        file = str(path.relative_to(TESTS))
        assert {f"{file}::{test}" for test in found_in(file)} <= named


def test_the_bounds_are_those_of_the_code() -> None:
    """Numbers of the table of bounds."""
    hub = next(line for line in PAGE.splitlines() if line.startswith("| hub | "))
    assert f"{BOUNDS.waiting} whose request is not whole" in hub
    assert f"head {BOUNDS.header_s:g} s" in hub
    assert f"not read {BOUNDS.write_s:g} s" in hub
    assert f"{MOST} questions of one user" in hub
    assert f"{REPORTS_OF_USER} of the {REPORTS_AT_ONCE} places of reports" in hub
