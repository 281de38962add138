"""The table of releases: page, parts and what was recorded belong together."""

from pathlib import Path

from tools.matrix.parts import PARTS, TURN, TURN_ALONE
from tools.matrix.parts_run import read_measured
from tools.matrix.releases import RELEASES
from tools.reference import releases

ROOT = Path(__file__).parents[2]


def test_every_part_has_a_row_with_a_cell_for_each_release() -> None:
    """Each cell shows what was recorded, or that the part was not run."""
    measured, page = read_measured(), releases.page()
    for part in PARTS:
        row = next(line for line in page.splitlines() if line.startswith(f"| {part.name} |"))
        cells = [cell.strip() for cell in row.strip("| ").split(" | ")[1:]]
        assert len(cells) == len(RELEASES)
        for item, cell in zip(RELEASES, cells, strict=True):
            known = measured.get((item.name, part.name))
            assert cell == (f"{known.text}, {known.seconds} s" if known else "not run")


def test_every_test_without_success_is_named_with_its_reason() -> None:
    """A cell without a mark has its reason on the page."""
    page = releases.page()
    for cell in read_measured().values():
        for test in (*cell.failed, *cell.skipped):
            assert f"`{test}`" in page


def test_the_record_is_of_releases_and_parts_that_are_declared() -> None:
    """Nothing is left over of a part or a release that is declared no more."""
    assert set(read_measured()) <= {(item.name, part.name) for item in RELEASES for part in PARTS}


def test_the_tests_of_the_parts_exist() -> None:
    """Each selection names a file that is there, and a function that the file has."""
    for selection in {test for part in (*PARTS, TURN, TURN_ALONE) for test in part.tests}:
        file, _, function = selection.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not function or f"def {function.partition('[')[0]}(" in text, selection
