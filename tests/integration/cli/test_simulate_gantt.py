"""`gpuwaste simulate run --gantt`: bars of the chosen window, in JSON and in pages; what is no window is refused."""

from pathlib import Path

import pytest
from tests.integration.cli.test_simulate import ROWS, simulated, swf

from gpuwaste.cli.main import main


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Return what simulates four jobs on two nodes of two CPUs."""
    machine = tmp_path / "m.toml"
    machine.write_text('[[nodes]]\nnames = "n[1-2]"\ncpus = 2\n')
    return ["--swf", str(swf(tmp_path / "small.swf", ROWS)), "--machine", str(machine), "--scheduler", "slurm"]


def test_bars_are_what_was_simulated(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By default JSON has none; in the default window each job has its start and CPUs; a window has its jobs."""
    assert "gantt" not in simulated(capsys, *words)
    out = tmp_path / "starts.csv"
    found = simulated(capsys, "what-if", "processors=2", *words, "--gantt", "deepest", "-o", str(out))
    base, changed = found["gantt"]
    assert (base["name"], changed["name"]) == ("slurm", "processors=2:slurm")
    assert [node["name"] for node in base["nodes"]] == ["n1", "n2"]
    assert (base["start"], base["end"]) == (changed["start"], changed["end"])
    starts = {int(row.split(",")[0]): int(row.split(",")[5]) for row in out.read_text().splitlines()[1:]}
    assert {bar["job_id"]: bar["start"] for bar in base["bars"]} == starts
    held = {job: sum(bar["count"] for bar in base["bars"] if bar["job_id"] == job) for job in starts}
    assert held == {1: 4, 2: 4, 3: 1, 4: 1}, "three CPUs are two on each of two nodes"
    (early,) = simulated(capsys, *words, "--gantt", "@0,@5")["gantt"]
    assert {bar["job_id"] for bar in early["bars"]} == {1}


def test_pages_have_the_chart_unless_it_is_not_wanted(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--html` draws it beside the plots, with a title for each bar; `--gantt none` leaves it out."""
    assert main(["simulate", "run", *words, "--html", str(tmp_path / "with")]) == 0
    assert main(["simulate", "run", *words, "--html", str(tmp_path / "without"), "--gantt", "none"]) == 0
    capsys.readouterr()
    chart = (tmp_path / "with" / "simulation.4.svg").read_text()
    assert "Nodes by job: slurm" in chart
    assert "<title>job 1, n1 2 of 2 CPUs, waited " in chart
    assert "does not number them" in " ".join((tmp_path / "with" / "simulation.html").read_text().split())
    assert not (tmp_path / "without" / "simulation.4.svg").exists()


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("@5", 2, "expected START,END"),
        ("@9,@5", 2, "the first time is not before the second"),
        ("yesterday's,now", 2, "expected YYYY-MM-DD"),
        ("@99999,@999999", 0, "no job runs in the window"),
    ],
)
def test_what_is_no_window(
    given: str, code: int, said: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is told in one line; a window without jobs, which is known late, does not lose the simulation."""
    assert main(["simulate", "run", *words, "--gantt", given]) == code
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_a_scheduler_that_counts_places_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EASY knows no nodes: the option is refused; its pages have no chart."""
    path = str(swf(tmp_path / "small.swf", ROWS))
    assert main(["simulate", "run", "--swf", path, "--gantt", "deepest"]) == 2
    assert "places no job on a node" in capsys.readouterr().err
    assert main(["simulate", "run", "--swf", path, "--html", str(tmp_path / "pages")]) == 0
    assert not (tmp_path / "pages" / "simulation.4.svg").exists()
