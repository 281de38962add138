"""Parts of the matrix: what a report of pytest becomes, how cells are kept, whose turn it is."""

import argparse
import datetime as dt
import os
from pathlib import Path

import pytest
from tools import slurm_gpu
from tools.matrix import __main__ as matrix
from tools.matrix import parts_run, trees
from tools.matrix.parts import PARTS, Part, part
from tools.matrix.parts_run import Cell, read_measured, read_report, record, turn_of
from tools.matrix.releases import RELEASES, Release

from gpuwaste.core.errors import ConfigError, GpuwasteError, ParseError

_REPORT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.system.test_a" name="test_ok" time="1"/>
<testcase classname="tests.system.test_a" name="test_bad">
<failure message="assert 1 == 2&#10;more">text</failure></testcase>
<testcase classname="tests.system.test_b" name="test_broken"><error message="no cluster">x</error></testcase>
<testcase classname="tests.system.test_b" name="test_left"><skipped message="no GPU here"/></testcase>
</testsuite></testsuites>"""


def _cell(**changes: object) -> Cell:
    values: dict[str, object] = {"slurm": "24.11.5", "day": "2026-01-02", "seconds": 7, "passed": 3}
    return Cell(**{**values, "failed": {}, "skipped": {}, **changes})  # type: ignore[arg-type]


def test_report_counts_each_test_with_the_first_line_of_its_reason(tmp_path: Path) -> None:
    """Failures, errors and skips are named by file and test; what passed is counted."""
    path = tmp_path / "report.xml"
    path.write_text(_REPORT)
    cell = read_report(path, "24.11.5", 9)
    assert (cell.slurm, cell.seconds, cell.passed) == ("24.11.5", 9, 1)
    bad = {"tests/system/test_a.py::test_bad": "assert 1 == 2", "tests/system/test_b.py::test_broken": "no cluster"}
    assert cell.failed == bad
    assert cell.skipped == {"tests/system/test_b.py::test_left": "no GPU here"}
    with pytest.raises(ParseError, match="no report of pytest"):
        read_report(tmp_path / "none.xml", "24.11.5", 9)


@pytest.mark.parametrize(
    ("cell", "text", "good"),
    [
        (_cell(), "✔ 3", True),
        (_cell(skipped={"a": "b"}), "✔ 3 (1 skipped)", True),
        (_cell(failed={"a": "b"}), "✘ 1 of 4 failed", False),
        (_cell(passed=0, skipped={"a": "b"}), "not tested", False),
    ],
)
def test_only_what_was_tested_and_did_not_fail_has_a_mark(cell: Cell, text: str, *, good: bool) -> None:
    """A part whose tests were all skipped has no mark."""
    assert (cell.text, cell.good) == (text, good)


def test_a_plugin_that_the_mirror_no_longer_has_is_told_beside_the_output_of_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where a release's tree is older than the mirror, --run prints what its command prints and nothing else."""

    def newer(version: str) -> Path:
        raise GpuwasteError(f"slurm_gpu: the mirror has another, slurmd here is {version}")

    monkeypatch.setattr(matrix, "_make_tree", lambda *_: None)
    monkeypatch.setattr(matrix, "_build_for_host", lambda: os.write(1, b"built\n"))
    monkeypatch.setattr(trees, "version_of", lambda _: "26.5.1")
    monkeypatch.setattr(slurm_gpu, "provide", newer)
    monkeypatch.setattr(os, "execvp", lambda *_: None)
    matrix._become(argparse.Namespace(release=[RELEASES[-1].name], run=["true"]), Path("none"))
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "built\n26.05: slurm_gpu: the mirror has another, slurmd here is 26.5.1\n")


def test_a_reason_for_a_skip_in_ci_is_text() -> None:
    """Reasons are found as they stand, so a line of .ci/skips is no regular expression."""
    lines = (Path(__file__).parents[3] / ".ci" / "skips").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line[:1] != "#" and set(line) & set("\\*[")]


def test_record_replaces_one_cell_and_keeps_the_others(tmp_path: Path) -> None:
    """Cells of two runs are merged by release and part."""
    path, (old, new) = tmp_path / "measured.json", RELEASES[:2]
    record(path, old, PARTS[0], _cell())
    record(path, new, PARTS[0], _cell(passed=5))
    record(path, old, PARTS[0], _cell(passed=4))
    found = read_measured(path)
    assert {key: cell.passed for key, cell in found.items()} == {
        (old.name, PARTS[0].name): 4,
        (new.name, PARTS[0].name): 5,
    }
    path.write_text('{"24.11": {"submit": {"passed": 1}}}')
    with pytest.raises(ParseError, match="no results of parts"):
        read_measured(path)


def test_newer_releases_have_their_turn_day_by_day() -> None:
    """Two days that follow each other have different releases, and none is the host's own."""
    days = [dt.date(2026, 12, 31), dt.date(2027, 1, 1), dt.date(2027, 1, 2)]
    names = [turn_of(day).name for day in days]
    assert names[0] == names[2]
    assert {*names} == {item.name for item in RELEASES if item.suite}


def test_unknown_part_is_refused_with_the_names_of_all() -> None:
    """A wrong name says which there are."""
    assert part("submit").name == "submit"
    with pytest.raises(ConfigError, match=r"no part 'x' in the matrix; there are: submit, "):
        part("x")


@pytest.mark.parametrize(
    ("alone", "first", "again", "good"),
    [
        (_cell(), _cell(), None, True),
        (_cell(), _cell(failed={"tests/system/test_a.py::test_b[1]": "x"}), _cell(passed=1), True),
        (_cell(passed=0, failed={"tests/system/test_v.py::test_v": "x"}), _cell(), _cell(passed=1), True),
        (_cell(), _cell(failed={"tests/system/test_a.py::test_b": "x"}), _cell(passed=0, failed={"b": "x"}), False),
        (_cell(), _cell(failed={f"tests/system/test_a.py::test_{n}": "x" for n in range(6)}), None, False),
    ],
)
def test_few_tests_of_a_turn_that_failed_run_once_more_alone(
    alone: Cell, first: Cell, again: Cell | None, *, good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What passes alone counts as passed; what fails again, and many failures, make the turn fail."""
    asked: list[Part] = []
    cells = [cell for cell in (alone, first, again) if cell is not None]

    def run(part: Part, chosen: Release, folder: Path) -> Cell:
        del chosen, folder
        asked.append(part)
        return cells[len(asked) - 1]

    monkeypatch.setattr(parts_run, "run_part", run)
    cell = parts_run.run_turn(RELEASES[1], Path("trees"))
    assert (cell.good, len(asked)) == (good, len(cells))
    assert cell.passed == sum(one.passed for one in cells)
    if again is not None:
        assert set(asked[2].selections(RELEASES[1].name)) == {*alone.failed, *first.failed}
        assert asked[2].workers == 1
