"""Which failures of a run of all tests may run once more, alone."""

import json
from pathlib import Path

import pytest
from tools import once_more

SERVER, LOGIC = "tests/integration/hub/test_a.py::test_one[x]", "tests/unit/hub/test_a.py::test_one"


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ([SERVER], True),
        ([f"{SERVER}{n}" for n in range(once_more.FEW)], True),
        ([f"{SERVER}{n}" for n in range(once_more.FEW + 1)], False),
        ([SERVER, LOGIC], False),
        (["tests/integration_of_another/test_a.py::test_one"], False),
        ([], False),
    ],
)
def test_a_few_of_the_folders_given_may(tmp_path: Path, failed: list[str], again: bool) -> None:
    """At most five, and nothing beside the folders that the caller names."""
    kept = tmp_path / "v" / "cache"
    kept.mkdir(parents=True)
    (kept / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)), encoding="utf-8")
    assert once_more.main([str(tmp_path), "tests/integration"]) == (not again)


def test_a_run_that_left_nothing_may_not(tmp_path: Path) -> None:
    """A pytest that broke off before its end has no list of failures: so nothing runs again."""
    assert once_more.main([str(tmp_path), "tests"]) == 1
