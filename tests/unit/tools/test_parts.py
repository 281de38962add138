"""Each test is in one part of `make test` or `make test-all`; a part that did not run is a failure with its reason."""

import re
from itertools import chain, combinations
from pathlib import Path

import pytest
from tests.selection import ANYWHERE, part_of
from tools import parts

WELL = '<testsuites><testsuite tests="12" skipped="2" failures="0" errors="0"/></testsuites>'
FAILED = '<testsuites><testsuite tests="12" skipped="2" failures="1" errors="1"/></testsuites>'
EMPTY = '<testsuites><testsuite tests="3" skipped="3" failures="0" errors="0"/></testsuites>'
ROOT = Path(__file__).parents[3]
COMMAND = "test-all"
TITLES = parts.PARTS[COMMAND]


def test_each_part_that_a_test_can_be_in_is_run_by_one_command() -> None:
    """Whatever the folder and the marks, the part is one of five, each of which tools/run-tests runs, once."""
    marks = ("cluster", "quiet", "long", "core")
    sets = list(chain.from_iterable(combinations(marks, count) for count in range(len(marks) + 1)))
    folders = [folder.name for folder in (ROOT / "tests").iterdir() if folder.is_dir()]
    found = {part_of(folder, given) for folder in folders for given in sets}
    script = (ROOT / "tools" / "run-tests").read_text()
    run = {part for kind in re.findall(r"kind=(\w+)", script) for part in (f"{kind}_anywhere", f"{kind}_clusters")}
    assert found == run | set(re.findall(r"part demo (\w+)", script))
    assert len(found) == 5
    assert {name.partition("_")[0] for name in found} == {"core", "rest"}


def test_a_test_without_marks_is_run() -> None:
    """A new test that needs no cluster is in `make test`, one with a cluster in `make test-all`."""
    assert {part_of(folder, ()) for folder in ANYWHERE} == {"core_anywhere"}
    assert part_of("docs", ["cluster"]) == part_of("system", ["cluster"]) == "rest_clusters"
    assert part_of("system", ["cluster", "core", "long"]) == "core_clusters"


def test_what_is_smaller_in_a_quick_run_is_in_the_thorough_one() -> None:
    """A test whose size depends on the profile has the mark by which `make thorough` runs it."""
    files = [*(ROOT / "tests" / "unit").rglob("*.py"), *(ROOT / "tests" / "integration").rglob("*.py")]
    texts = {file: file.read_text() for file in files if file != Path(__file__)}
    sized = {file for file, text in texts.items() if re.search(r"\bfew\(\)|range\(examples\(", text)}
    assert len(sized) > 3
    assert [file for file in sized if "pytest.mark.drawn" not in texts[file]] == []


def test_the_odd_host_is_given_all_that_runs_anywhere() -> None:
    """The folders of tools/odd-host are those whose tests have a part that it runs."""
    script = (ROOT / "tools" / "odd-host").read_text()
    assert set(re.findall(r"\btests/(\w+)(?![.\w])", script)) == set(ANYWHERE)


def written(folder: Path, statuses: dict[str, int], results: dict[str, str]) -> Path:
    """Write what a run of the command leaves."""
    folder /= COMMAND
    folder.mkdir()
    (folder / parts.ENDED).write_text("".join(f"{name} {status}\n" for name, status in statuses.items()))
    for name, text in results.items():
        (folder / f"{name}.xml").write_text(text)
    return folder


def test_a_run_of_every_part_is_well(tmp_path: Path) -> None:
    """Each part has a row with its counts, and the whole has passed."""
    folder = written(tmp_path, dict.fromkeys(TITLES, 0), dict.fromkeys(TITLES, WELL))
    well, text = parts.summary(folder)
    assert well
    for title in TITLES.values():
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
    others = dict.fromkeys(set(TITLES) - {"de"}, WELL)
    noted = dict.fromkeys(others, 0) | ({} if status is None else {"de": status})
    well, text = parts.summary(written(tmp_path, noted, others | ({} if results is None else {"de": results})))
    assert not well
    (row,) = [line for line in text.splitlines() if line.startswith(TITLES["de"])]
    assert said in row


@pytest.mark.parametrize(("again", "results", "well"), [(0, WELL, True), (1, FAILED, False), (0, EMPTY, False)])
def test_what_failed_beside_others_may_pass_alone(tmp_path: Path, again: int, results: str, well: bool) -> None:
    """A part whose failures passed once more, alone, is well; the row says that it was so."""
    noted = dict.fromkeys(TITLES, 0) | {"clusters": 1, "once-more-clusters": again}
    found = dict.fromkeys(TITLES, WELL) | {"clusters": FAILED, "once-more-clusters": results}
    said, text = parts.summary(written(tmp_path, noted, found))
    assert said == well
    assert ("passed alone" in text) == well


@pytest.mark.parametrize("command", parts.PARTS)
def test_the_exit_code_is_that_of_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """A folder in which nothing ran ends with 1, and names every part."""
    assert parts.main([str(tmp_path / command)]) == 1
    said = capsys.readouterr().out
    assert [title for title in parts.PARTS[command].values() if title not in said] == []
