"""`gpuwaste export`: what it asks the hub, what it writes, what it leaves out and says so."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.unit.ledger.builders import T0
from tests.unit.show.documents import one_job, report

from gpuwaste.cli.main import main

WINDOW = ["-S", f"uts{T0}", "-E", f"uts{T0 + 6 * 86400}"]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    with running_hub(tmp_path) as double:
        double.answers = {f"/v1/jobs/{job}": one_job(job) for job in ("5", "7", "30", "40", "50", "60", "70")}
        double.answers["/v1/report"] = report(scope="cluster", name="")
        yield double


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    return ["--config", str(tmp_path / "gpuwaste.toml")]


def test_a_window_is_each_job_once(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The tasks of an array are asked for together; a running job is left out, with a line on stderr."""
    assert main(["export", "xdmod", "-a", *WINDOW, *config]) == 0
    path, asked = hub.asked[0]
    assert (path, asked["cluster"], "limit" in asked) == ("/v1/report", "1", False)
    assert sorted(path for path, _ in hub.asked[1:]) == sorted(f"/v1/jobs/{job}" for job in (5, 7, 30, 40, 50, 60, 70))
    out, err = capsys.readouterr()
    found = [json.loads(line)["acct"]["id"] for line in out.splitlines()]
    assert sorted(found, key=int) == ["5", "7", "30", "31", "32", "40", "40", "50", "60"]
    assert "left out" not in err


def test_a_run_that_ended_before_the_window_is_not_written(
    hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Job ids are used again: of a job that is asked for by its id, only runs of the window are written."""
    assert main(["export", "xdmod", "-a", "-S", f"uts{T0 + 3000}", "-E", f"uts{T0 + 6 * 86400}", *config]) == 0
    found = [json.loads(line)["_id"] for line in capsys.readouterr().out.splitlines()]
    assert f"40-{T0 + 7200}" in found
    assert f"40-{T0 + 600}" not in found


def test_an_open_run_is_counted(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written of it: exit code 3, and both lines say why."""
    assert main(["export", "jobstats", "70", *config]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "1 runs left out: still running" in err
    assert "nothing to export" in err


def test_named_jobs_are_asked_for_alone(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not there, or not the caller's, is named on stderr; the others are written."""
    assert main(["export", "jobstats", "7", "999", "-M", "gw", *config]) == 0
    assert hub.asked == [("/v1/jobs/7", {"cluster": "gw"}), ("/v1/jobs/999", {"cluster": "gw"})]
    out, err = capsys.readouterr()
    assert out.startswith("7 JS1:")
    assert "1 jobs left out (not found, or not visible to you): 999" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["csv"], "expected one of jobstats, sacctmgr, xdmod"),
        (["xdmod", "7;rm"], "expected a job ID"),
        (["xdmod", "../7"], "expected a job ID"),
        (["xdmod", "-S", "now", "-E", "now-1day"], "is not before"),
    ],
)
def test_wrong_words_are_one_line(
    words: list[str], said: str, hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked, and the line says what was expected."""
    assert main(["export", *words, *config]) == 2
    assert said in capsys.readouterr().err
    assert hub.asked == []
