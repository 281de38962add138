"""What `make test` says of its parts in the end: a part that did not run is a failure with its reason."""

from pathlib import Path

import pytest
from tools import parts

WELL = '<testsuites><testsuite tests="12" skipped="2" failures="0" errors="0"/></testsuites>'
FAILED = '<testsuites><testsuite tests="12" skipped="2" failures="1" errors="1"/></testsuites>'
EMPTY = '<testsuites><testsuite tests="3" skipped="3" failures="0" errors="0"/></testsuites>'


def written(folder: Path, statuses: dict[str, int], results: dict[str, str]) -> Path:
    """Write what a run of all tests leaves."""
    (folder / parts.ENDED).write_text("".join(f"{name} {status}\n" for name, status in statuses.items()))
    for name, text in results.items():
        (folder / f"{name}.xml").write_text(text)
    return folder


def test_a_run_of_every_part_is_well(tmp_path: Path) -> None:
    """Each part has a row with its counts, and the whole has passed."""
    folder = written(tmp_path, dict.fromkeys(parts.PARTS, 0), dict.fromkeys(parts.PARTS, WELL))
    well, text = parts.summary(folder)
    assert well
    for title in parts.PARTS.values():
        (row,) = [line for line in text.splitlines() if line.startswith(title)]
        assert row.split()[-4:] == ["10", "0", "2", "passed"]


@pytest.mark.parametrize(
    ("status", "results", "said"),
    [
        (None, WELL, "nothing says how it ended"),
        (0, None, "it left no results"),
        (0, WELL[:30], "it left no results"),
        (0, EMPTY, "DID NOT RUN: no test"),
        (137, WELL, "KILLED by SIGKILL (out of memory?)"),
        (143, None, "KILLED by SIGTERM"),
        (4, None, "pytest refused its arguments"),
        (5, EMPTY, "no test was found"),
        (77, None, "status 77"),
        (1, FAILED, "FAILED"),
    ],
)
def test_a_part_that_did_not_run_is_a_failure(
    tmp_path: Path, status: int | None, results: str | None, said: str
) -> None:
    """Whatever kept a part from its tests, the other parts' success does not hide it, and its row says why."""
    others = dict.fromkeys(set(parts.PARTS) - {"de"}, WELL)
    noted = dict.fromkeys(others, 0) | ({} if status is None else {"de": status})
    well, text = parts.summary(written(tmp_path, noted, others | ({} if results is None else {"de": results})))
    assert not well
    (row,) = [line for line in text.splitlines() if line.startswith(parts.PARTS["de"])]
    assert said in row


@pytest.mark.parametrize(("again", "results", "well"), [(0, WELL, True), (1, FAILED, False), (0, EMPTY, False)])
def test_what_failed_beside_others_may_pass_alone(tmp_path: Path, again: int, results: str, well: bool) -> None:
    """A part whose failures passed once more, alone, is well; the row says that it was so."""
    noted = dict.fromkeys(parts.PARTS, 0) | {"others": 1, "once-more-others": again}
    found = dict.fromkeys(parts.PARTS, WELL) | {"others": FAILED, "once-more-others": results}
    said, text = parts.summary(written(tmp_path, noted, found))
    assert said == well
    assert ("passed alone" in text) == well


def test_the_exit_code_is_that_of_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder in which nothing ran ends with 1, and names every part."""
    assert parts.main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert [title for title in parts.PARTS.values() if title not in said] == []
