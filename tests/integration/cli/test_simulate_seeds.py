"""`gpuwaste simulate run --seeds`: what is random is drawn again, everything else is simulated once."""

import json
import statistics
from pathlib import Path

import pytest
from tests.integration.cli.test_simulate import ROWS, simulated, swf

from gpuwaste.cli import seeds
from gpuwaste.cli.main import main

LUBLIN = ("--generate", "lublin:jobs=60,processors=32,seed=7", "--scheduler", "fcfs,easy")


def test_figures_over_seeds_are_those_of_the_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    """Seeds 7, 8 and 9 by themselves give the values; the mean is theirs; the rest of the document is of seed 7."""
    found = simulated(capsys, *LUBLIN, "--seeds", "3")
    alone = [simulated(capsys, "--generate", f"lublin:jobs=60,processors=32,seed={n}", *LUBLIN[2:]) for n in (7, 8, 9)]
    for name in ("fcfs", "easy"):
        values = [one["schedulers"][name]["mean_wait_s"] for one in alone]
        wait = found["seeds"]["runs"][name]["mean_wait_s"]
        assert wait["values"] == values
        assert wait["mean"] == pytest.approx(statistics.fmean(values))
        assert wait["low"] < wait["mean"] < wait["high"]
    assert found["schedulers"] == alone[0]["schedulers"]
    assert (found["seeds"]["seeds"], found["seeds"]["drawn"]) == ([0, 1, 2], ["the jobs of lublin"])
    (difference,) = found["differences"]
    each = [one["differences"][0]["figures"]["mean_wait_s"]["difference"] for one in alone]
    assert difference["over_seeds"]["mean_wait_s"]["difference"] == pytest.approx(statistics.fmean(each), abs=1e-5)
    assert simulated(capsys, *LUBLIN, "--seeds", "3") == found, "equal words give equal bytes"


def test_steps_and_failures_are_drawn_with_each_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A step that leaves jobs out at random and failures of nodes differ by seed, and the document names both."""
    log, machine = swf(tmp_path / "small.swf", [(n, 9 * n, 0, 100, 1, 100) for n in range(1, 40)]), tmp_path / "m.toml"
    machine.write_text('[[nodes]]\nnames = "n[1-2]"\ncpus = 1\n[failures]\nmtbf_h = 0.3\nrepair_h = 0.2\n')
    words = ("--swf", str(log), "--machine", str(machine), "--scheduler", "slurm", "--step", "thin=0.5")
    found = simulated(capsys, "what-if", "processors=2", *words, "--seeds", "3")
    assert found["seeds"]["drawn"] == ["the step thin", "failures of nodes"]
    assert len(set(found["seeds"]["runs"]["slurm"]["mean_wait_s"]["values"])) == 3
    assert len(found["seeds"]["runs"]["processors=2:slurm"]["mean_wait_s"]["values"]) == 3
    assert main(["simulate", "run", *words, "--seeds", "3"]) == 0
    text = capsys.readouterr().out
    assert "Over 3 seeds" in text
    assert "The seeds change the step thin and failures of nodes." in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_nothing_random_is_simulated_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log has nothing that a seed draws: one line says so, and its figures are those without --seeds."""
    path = str(swf(tmp_path / "small.swf", ROWS))
    found = simulated(capsys, "--swf", path, "--seeds", "50")
    assert found.pop("seeds") == {"seeds": [0], "drawn": [], "runs": {}}
    assert found == simulated(capsys, "--swf", path)
    assert main(["simulate", "run", "--swf", path, "--seeds", "50"]) == 0
    assert "Nothing in this simulation is random" in capsys.readouterr().out


def test_saved_results_are_compared_seed_by_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the same seeds the difference over seeds is paired; with other seeds there is none."""
    (tmp_path / "state").mkdir()
    config = tmp_path / "gpuwaste.toml"
    config.write_text(f'[hub]\nstate_dir = "{tmp_path}/state"\n')

    def saved(*words: str) -> str:
        assert main(["simulate", "run", *LUBLIN[:2], "--save", "--config", str(config), *words]) == 0
        return capsys.readouterr().err.split()[2]

    ids = [saved("--seeds", "4", "--processors", size) for size in ("32", "40")]
    few = saved("--seeds", "2", "--processors", "40")
    assert main(["simulate", "compare", *ids, "--json", "--config", str(config)]) == 0
    wait = json.loads(capsys.readouterr().out)["over_seeds"]["mean_wait_s"]
    assert wait["low"] < wait["difference"] < min(wait["high"], 0)
    assert main(["simulate", "compare", *ids, "--config", str(config)]) == 0
    assert "over the same seeds" in capsys.readouterr().out
    assert main(["simulate", "compare", ids[0], few, "--json", "--config", str(config)]) == 0
    assert "over_seeds" not in json.loads(capsys.readouterr().out)


def test_an_interruption_leaves_the_seeds_until_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after two of five seeds: their figures, a line that says so, and the code of an interruption."""

    def interrupted(done: int, count: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(seeds, "_progress", interrupted)
    assert main(["simulate", "run", *LUBLIN, "--seeds", "5", "--json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert found["stopped"] == "Interrupted: 2 of 5 seeds were simulated."
    assert len(found["seeds"]["runs"]["easy"]["mean_wait_s"]["values"]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "0"), "expected a number from 1 to 1000"),
        (("--seeds", "many"), "expected a number from 1 to 1000"),
        (("--seeds", "2", "--engine", "slurmctld", "-o", "runs"), "give --runs N"),
    ],
)
def test_seeds_that_are_none(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is refused in one line."""
    try:
        code = main(["simulate", "run", *LUBLIN, *words])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert said in capsys.readouterr().err
