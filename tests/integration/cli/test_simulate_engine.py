"""`gpuwaste simulate run --engine slurmctld`: contradicting options, and directories that cannot be used."""

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpuwaste.cli.main import main
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.show.layout import Look
from gpuwaste.sim.document import Spread
from gpuwaste.sim.real.ensemble_document import Agreement, EngineDocument, RealRun
from gpuwaste.sim.real.faster_clock import NEEDED, require_programs, search_path
from gpuwaste.sim.simulation_text import engine_text

LOG = "; Version: 2.2\n; MaxProcs: 2\n1 0 0 30 1 -1 -1 1 600 -1 1 7 1 -1 1 1 -1 -1\n"
DOCUMENT = EngineDocument(
    version="1",
    engine="slurmctld 22.05.8",
    trace="log.swf",
    inputs_sha256="0",
    cluster="c",
    nodes=2,
    cpus=8,
    gpus=4,
    jobs=10,
    speed=20,
    runs=[
        RealRun(number=1, complete=True, states={"COMPLETED": 9, "REFUSED": 1}, wall_s=60.0, mean_wait_s=90.0),
        RealRun(number=2, complete=False, states={"COMPLETED": 3, "NOT_ENDED": 7}, wall_s=20.0),
    ],
    mean_wait_s=Spread(mean=90.0, low=80.0, high=100.0, deviation=5.0),
    agreement=Agreement(pairs=1, median_start_s=1.0, within_5_s=0.5, within_60_s=0.9),
    not_played=["Jobs have one user."],
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "slurmctld"), "--engine slurmctld needs -o DIR"),
        (("--engine", "slurmctld", "-o", "{log}"), "not a directory"),
        (("--engine", "slurmctld", "-o", "{runs}", "--walltime", "truth"), "plans with the users' limits"),
        (("--runs", "3"), "--runs and --speed need --engine slurmctld"),
        (("--speed", "3"), "--runs and --speed need --engine slurmctld"),
        (("--engine", "slurmctld", "-o", "{runs}", "--runs", "0"), "expected a number from 1 to"),
        (("--engine", "slurmctld", "-o", "{runs}", "--speed", "1e3"), "expected a number from 1 to 200"),
        (("--engine", "flux", "-o", "{runs}"), "invalid choice"),
    ],
)
def test_wrong_words_are_one_line(
    words: tuple[str, ...], said: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each contradiction is refused before anything starts, and says what to do."""
    given = [word.format(log=log, runs=log.parent / "runs") for word in words]
    try:
        code = main(["simulate", "run", "--swf", str(log), *given])
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err
    assert not (log.parent / "runs").exists()


def test_a_missing_program_is_named() -> None:
    """What is not installed is in one line with what to install."""
    with pytest.raises(GpuwasteError, match="not installed on this host: slurmctld, faketime: install Slurm"):
        require_programs(lambda name: None if name in {"slurmctld", "faketime"} else f"/usr/bin/{name}")


@pytest.mark.parametrize("text", ["{", '{"version": 1}', "\udcff", json.dumps({"runs": [1]})])
def test_another_file_in_the_place_of_the_ensemble(text: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is no ensemble is named before anything starts, with what to do."""
    if any(shutil.which(name, path=search_path()) is None for name in NEEDED):
        pytest.skip("a Slurm cluster on loopback needs root (daemons of several users, device nodes)")
    runs = log.parent / "runs"
    runs.mkdir()
    (runs / "ensemble.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main(["simulate", "run", "--swf", str(log), "--engine", "slurmctld", "-o", str(runs)]) == 1
    assert "remove the file, or name another directory with -o" in capsys.readouterr().err


def test_the_text_of_an_ensemble() -> None:
    """Runs, what they say together, and what is not played; an interrupted run is marked."""
    text = engine_text(DOCUMENT, "/runs", Look())
    assert "1 min 30 s (95 % interval of the mean: 1 min 20 s to 1 min 40 s)" in text
    assert "Run 1: 1 REFUSED." in text
    assert "Run 2 was interrupted: 7 NOT_ENDED." in text
    assert "  2*" in text
    assert "Jobs have one user." in text
    alone = replace(DOCUMENT, mean_wait_s=None, agreement=None, runs=DOCUMENT.runs[1:])
    assert "unknown: no complete run" in engine_text(alone, "/runs", Look())
