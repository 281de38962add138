"""`gpuwaste policy verdicts`: what it asks the hub, what it prints, its exit codes."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.unit.show.verdict_documents import listed, score

from gpuwaste.cli.main import main

DAY = 86400


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    with running_hub(tmp_path) as double:
        double.answers = {"/v1/verdicts": listed(), "/v1/verdicts/score": score()}
        yield double


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    return ["--config", str(tmp_path / "gpuwaste.toml")]


def test_a_list_asks_for_a_week(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Of everybody whom the caller may see, as many as a screen takes; filters are passed on."""
    assert main(["policy", "verdicts", *config]) == 0
    path, asked = hub.asked[-1]
    assert (path, asked["limit"], "user" in asked) == ("/v1/verdicts", "40", False)
    assert int(asked["end"]) - int(asked["start"]) in range(7 * DAY - 3601, 7 * DAY + 3602)
    assert "alice: train" in capsys.readouterr().out
    assert main(["policy", "verdicts", "-u", "bob", "--policy", "site", "--csv", *config]) == 0
    assert {"user": "bob", "policy": "site", "limit": "10000"}.items() <= hub.asked[-1][1].items()


def test_a_score_asks_for_a_month(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Or since -S; --json is the whole document."""
    assert main(["policy", "verdicts", "--score", *config]) == 0
    path, asked = hub.asked[-1]
    assert path == "/v1/verdicts/score"
    assert abs(int(asked["since"]) - (time.time() - 30 * DAY)) < 3700
    assert "2026-W01" in capsys.readouterr().out
    assert main(["policy", "verdicts", "--score", "-S", "now-7days", "--json", *config]) == 0
    assert json.loads(capsys.readouterr().out) == score()


def test_a_bad_precision_can_fail_a_check(hub: HubDouble, config: list[str]) -> None:
    """7 of 12 scored were right: 42 % were wrong."""
    assert main(["policy", "verdicts", "--score", "--parsable", "--fail-above", "50", *config]) == 0
    assert main(["policy", "verdicts", "--score", "--parsable", "--fail-above", "40", *config]) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--score", "-u", "bob"], "leave out -u"),
        (["-S", "now", "-E", "now-1day"], "not before"),
        (["-S", "soon"], "soon"),
    ],
)
def test_wrong_words_are_named(
    hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    """In one line, before the hub is asked."""
    assert main(["policy", "verdicts", *words, *config]) == 2
    error = capsys.readouterr().err
    assert (said in error, error.count("\n"), hub.asked) == (True, 1, [])


def test_nothing_said_is_exit_code_3(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With a line of words for people, and an empty document for programs."""
    hub.answers = {"/v1/verdicts": {**listed(), "verdicts": []}, "/v1/verdicts/score": score(empty=True)}
    for words in ([], ["--score"]):
        assert main(["policy", "verdicts", *words, *config]) == 3
        assert "another -S" in capsys.readouterr().err
        assert main(["policy", "verdicts", *words, "--parsable", *config]) == 3
        assert len(capsys.readouterr().out.splitlines()) == 1
