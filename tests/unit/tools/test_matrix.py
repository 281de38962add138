"""The matrix' table, its comparison of requests, and what it takes from the host."""

from pathlib import Path

import pytest
from tools.matrix import compare, trees
from tools.matrix.releases import RELEASES, release
from tools.matrix.table import Column, Result, failed_column, good, missing, render

from gpuwaste.core.errors import ConfigError, GpuwasteError, ParseError

_CHECKS = ("starts", "loads")


def _column(name: str, *reasons: str, request: dict[str, object] | None = None) -> Column:
    results = tuple(Result(check, 1.25, reason) for check, reason in zip(_CHECKS, reasons, strict=False))
    sent = {} if request is None else {"--gres=gpu:2": {"op": "submit", "job": request}}
    return Column(name, f"{name}.5", results, sent)


def test_table() -> None:
    """Checks go down, releases across, each with its seconds; failures follow with their reason."""
    table = render([_column("22.05", "", ""), _column("24.11", "", "no such plugin")], _CHECKS)
    assert table.splitlines() == [
        "check (seconds)  22.05.5  24.11.5",
        "---------------  -------  ----------",
        "starts           ok 1.2   ok 1.2",
        "loads            ok 1.2   failed 1.2",
        "24.11, loads: no such plugin",
    ]


def test_good_needs_every_check_of_every_release() -> None:
    """A failed check, one that was not run, and no column at all are each no success."""
    assert good([_column("22.05", "", "")], _CHECKS)
    assert not good([_column("22.05", "", ""), _column("24.11", "", "bad")], _CHECKS)
    assert not good([_column("22.05", "")], _CHECKS)
    assert not good([], _CHECKS)
    assert missing([_column("22.05", "")], _CHECKS) == ["22.05, not run: loads"]


def test_release_that_cannot_be_run_fails() -> None:
    """A release without a tree is a failure in the table, with its reason."""
    column = failed_column("26.05", "no mirror", 0.5)
    assert not good([column], _CHECKS)
    assert "26.05, runs: no mirror" in render([column], _CHECKS)


def test_column_survives_its_file(tmp_path: Path) -> None:
    """What a column writes is read back the same; a cut file is an error that names it."""
    column = _column("22.05", "", "reason", request={"name": "a"})
    path = tmp_path / "22.05.json"
    column.save(path)
    assert Column.load(path) == column
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ParseError, match=r"22\.05\.json"):
        Column.load(path)


def test_spellings_of_releases_are_one_request() -> None:
    """gres:gpu:2 of 22.05 and gres/gpu:2 of later releases are no difference; another count is one."""
    old = _column("22.05", request={"tres_per_node": "gres:gpu:2"})
    new = _column("24.11", request={"tres_per_node": "gres/gpu:2"})
    other = _column("26.05", request={"tres_per_node": "gres/gpu:3"})
    assert compare.differences([old, new]) == []
    assert compare.spellings([old, new]) == ["--gres=gpu:2: tres_per_node: 22.05 'gres:gpu:2', 24.11 'gres/gpu:2'"]
    assert compare.differences([old, other]) == ["sbatch --gres=gpu:2: gpus is 2 on 22.05, 3 on 26.05"]


def test_line_that_a_release_did_not_send_is_a_difference() -> None:
    """A request that one release lacks is told."""
    left, right = _column("22.05", request={}), Column("24.11", "24.11.5", (), {"other": {"job": {}}})
    assert any("request is None on 22.05, 'none' on 24.11" in line for line in compare.differences([left, right]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list", "# deb http://old/debian x main\ndeb [signed-by=/k] http://mirror/debian bookworm main\n"),
        ("sources.list.d/debian.sources", "Types: deb\nURIs: http://mirror/debian\nSuites: bookworm\n"),
        ("sources.list.d/a.list", "deb http://vendor/apt stable main\ndeb http://mirror/debian bookworm main\n"),
    ],
)
def test_mirror_is_the_hosts(tmp_path: Path, name: str, text: str) -> None:
    """The mirror is the one of Debian's archive that the host's apt uses, in either format of its lists."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert trees.mirror(tmp_path) == "http://mirror/debian"


def test_no_mirror_says_what_to_do(tmp_path: Path) -> None:
    """A host whose lists name no Debian archive gets one line that says how to give one."""
    with pytest.raises(GpuwasteError, match="MATRIX_MIRROR"):
        trees.mirror(tmp_path)


def test_half_made_tree_is_not_ready(tmp_path: Path) -> None:
    """A tree without the stamp of this recipe is made anew."""
    newer = RELEASES[1]
    tree = tmp_path / newer.name
    assert "no tree" in trees.ready(newer, tmp_path)
    tree.mkdir()
    assert "no tree" in trees.ready(newer, tmp_path)
    (tree / "gpuwaste-matrix.recipe").write_text("another\n")
    assert "another recipe" in trees.ready(newer, tmp_path)
    (tree / "gpuwaste-matrix.recipe").write_text(trees.recipe(newer))
    assert trees.ready(newer, tmp_path) == ""


def test_unknown_release_is_told() -> None:
    """A release that is not in the matrix is refused, with those that are."""
    with pytest.raises(ConfigError, match=r"22\.05, 24\.11, 26\.05"):
        release("21.08")
