"""What a run of all tests leaves: the table of the slowest ones, and the order in which the next run begins files."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests import conftest
from tools import durations

RUN = """<testsuites><testsuite name="pytest">
<testcase classname="tests.system.test_a" name="test_one[a|b]" time="40.25"/>
<testcase classname="tests.system.test_a" name="test_two" time="20.5"><failure message="x"/></testcase>
<testcase classname="tests.unit.test_b" name="test_three" time="0.5"/>
</testsuite></testsuites>"""


def test_a_run_becomes_lengths_and_a_table(tmp_path: Path) -> None:
    """A file's tests are added up, short files are left out; the slowest come first and no name breaks the table."""
    (tmp_path / "others.xml").write_text(RUN, encoding="utf-8")
    cases = durations.cases_of(tmp_path / "others.xml")
    assert durations.lengths_of(cases) == {"tests/system/test_a.py": 61}
    assert durations.table_of({"others": cases}).splitlines() == [
        "| run of pytest | tests | s in all workers |",
        "|---|---:|---:|",
        "| others | 3 | 61 |",
        "",
        "| s | test |",
        "|---:|---|",
        "| 40.2 | tests/system/test_a.py::test_one[a&#124;b] |",
        "| 20.5 | tests/system/test_a.py::test_two |",
        "| 0.5 | tests/unit/test_b.py::test_three |",
    ]


def test_the_page_keeps_all_but_its_table() -> None:
    """Only what stands below the heading, up to the next one, is written anew."""
    page = "# Figures\n\n### The slowest tests\n\nold\nlines\n\n## The submit path\n\nkept\n"
    assert durations.with_table(page, "new\n") == page.replace("old\nlines\n", "new\n")
    assert "\n### The slowest tests\n\n" in durations.PAGE.read_text(encoding="utf-8")


def test_the_longest_files_begin() -> None:
    """Files stand by their recorded lengths, one with a cluster that has none before the rest, tests in their order."""
    lengths = json.loads(durations.LENGTHS.read_text(encoding="utf-8"))
    longest = max(lengths, key=lengths.__getitem__)

    def item(file: str, name: str, marks: tuple[str, ...] = ()) -> Any:
        found = dict.fromkeys(marks, True)
        return SimpleNamespace(
            path=durations.ROOT / file,
            name=name,
            get_closest_marker=found.get,
            iter_markers=lambda: [SimpleNamespace(name=mark) for mark in marks],
            add_marker=lambda _: None,
        )

    given = [
        item("a.py", "1"),
        item("b.py", "2"),
        item("a.py", "3"),
        item("c.py", "4", ("cluster",)),
        item(longest, "5"),
    ]
    conftest.pytest_collection_modifyitems(given)
    assert [one.name for one in given] == ["5", "4", "1", "2", "3"]
