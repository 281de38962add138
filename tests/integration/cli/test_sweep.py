"""`gpuwaste simulate generate` and `sweep`, end to end: files, processes that die, Ctrl-C, job arrays."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli import sweep_cases

from gpuwaste.cli.main import main
from gpuwaste.sim.sweep_results import SweepFolder
from gpuwaste.sim.sweep_runners import NOTED, ArrayRequest, run_locally, run_on_slurm
from gpuwaste.sim.sweep_study import SweepCase, SweepStudy, read_study
from gpuwaste.testing.patience import patient

SMALL = 'seeds = 4\n[fixed]\nschedulers = ["fcfs"]\n[grid]\ngenerate = ["lublin:jobs=30"]\n'
LONG = 'seeds = 400\n[fixed]\nschedulers = ["fcfs"]\n[grid]\ngenerate = ["lublin:jobs=1500"]\n'
MANY = 400  # seeds of it: far more than a busy machine runs before it is interrupted


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave few jobs of other processes to the interpreter: compiling takes longer.

    Not for tests that simulate in this process: what is compiled cannot call what is not.
    """
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def study(tmp_path: Path, text: str = SMALL) -> SweepStudy:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return read_study(path)


def folder(tmp_path: Path) -> SweepFolder:
    found = SweepFolder(tmp_path / "study")
    found.make()
    return found


def group_ends(group: int) -> bool:
    """Whether no process of a group is left within ten seconds: multiprocessing's own tracker ends after the rest."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_a_generated_log_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that `generate` wrote gives the same answer as the generator itself, whatever packs it."""
    answers = []
    for name in ("a.swf", "a.swf.xz", "a.swf.gz"):
        path = str(tmp_path / name)
        assert main(["simulate", "generate", "lublin", "jobs=60", "seed=2", "-o", path]) == 0
        capsys.readouterr()
        assert main(["simulate", "run", "--swf", path, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert main(["simulate", "run", "--generate", "lublin:jobs=60,seed=2", "--json"]) == 0
    drawn = json.loads(capsys.readouterr().out)
    assert [each["schedulers"] for each in answers] == [drawn["schedulers"]] * 3
    assert (drawn["processors"], drawn["processors_from"]) == (256, "the generator")


def test_steps_are_named_in_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document and the text name each step in its order, with all its numbers."""
    words = ["simulate", "run", "--generate", "lublin:jobs=60", "--step", "thin=0.5", "--step", "stretch=2"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == ["thin=0.5,seed=1", "stretch=2"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert text.index("thin=0.5,seed=1") < text.index("stretch=2")
    path = str(tmp_path / "s.swf")
    assert main(["simulate", "generate", "lublin", "jobs=60", "--step", "repeat=3", "-o", path]) == 0
    assert "180 jobs" in capsys.readouterr().out


def test_weeks_of_a_log_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """curie_week draws from the log that --swf names, and on the log's machine."""
    path = str(tmp_path / "log.swf")
    assert main(["simulate", "generate", "lublin", "jobs=1500", "-o", path]) == 0
    capsys.readouterr()
    assert main(["simulate", "run", "--generate", "curie_week:weeks=1,seed=4", "--swf", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trace"] == "curie_week:weeks=1,week=0,seed=4 of log.swf"
    assert found["processors"] == 256


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("generate lublin", "-o FILE"),
        ("generate none -o x.swf", "expected one of curie_week"),
        ("generate lublin jobs=0 -o x.swf", "expected a whole number from 1"),
        ("generate lublin -o /nowhere/x.swf", "/nowhere/x.swf: cannot be written"),
        ("generate curie_week --swf none.swf -o x.swf", "none.swf: cannot be read"),
        ("run --generate lublin --step fast=2", "expected one of burst"),
        ("sweep none.toml", "none.toml: cannot be read"),
    ],
)
def test_wrong_words_are_one_line(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be done is one line on stderr."""
    assert main(["simulate", *words.split()]) in {1, 2}
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


@pytest.mark.usefixtures("interpreted")
def test_a_sweep_and_the_same_once_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first run does every case, the second none, and both print the same summary."""
    study(tmp_path)
    words = [
        "simulate",
        "sweep",
        str(tmp_path / "study.toml"),
        "-o",
        str(tmp_path / "study"),
        "--json",
        "--threads",
        "2",
    ]
    assert main(words) == 0
    first = capsys.readouterr()
    assert "4 of 4 cases" in first.err
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "study" / "cases").iterdir()}
    assert main(words) == 0
    assert capsys.readouterr().out == first.out
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "study" / "cases").iterdir()} == files
    document: dict[str, Any] = json.loads(first.out)
    assert (document["cases"], document["failed"], document["rows"]) == (4, 0, 4)
    assert document["means"][0]["n"] == 4


@pytest.mark.usefixtures("interpreted")
def test_a_process_that_dies_and_one_that_hangs_fail_their_cases_alone(tmp_path: Path) -> None:
    """Of eight cases one kills its process and one never ends; six have rows, two their errors, and all are told."""
    found, into = study(tmp_path, SMALL.replace("seeds = 4", "seeds = 8")), folder(tmp_path)
    told: dict[int, str] = {}

    def ended(case: SweepCase, error: str) -> None:
        told[case.seed] = error

    run_locally(found.cases, into, 2, 3.0, ended, sweep_cases.run)
    assert {seed for seed, error in told.items() if not error} == {1, 2, 4, 6, 7, 8}
    assert "exit code 9" in told[sweep_cases.DIES]
    assert "took longer than 3 s" in told[sweep_cases.HANGS]
    assert {case.seed for case in into.left(found.cases)} == {sweep_cases.DIES, sweep_cases.HANGS}


@pytest.mark.usefixtures("interpreted")
def test_an_interrupted_sweep_leaves_what_it_has(tmp_path: Path) -> None:
    """After Ctrl-C results so far are readable, no process is left, and the next sweep goes on."""
    found = study(tmp_path, LONG)
    words = [sys.executable, "-m", "gpuwaste.cli", "simulate", "sweep", "study.toml"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True)
    into = SweepFolder(tmp_path / "study")
    until = time.monotonic() + 60
    while len(into.left(found.cases)) > MANY - 3 and time.monotonic() < until:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=patient(30))
    assert process.returncode == 130
    assert b"run the same command again to continue" in error
    left = len(into.left(found.cases))
    assert 0 < left <= MANY - 3
    assert (tmp_path / "study" / "results.parquet").exists()
    assert group_ends(process.pid)


@pytest.mark.usefixtures("interpreted")
def test_a_job_array_runs_every_case(tmp_path: Path) -> None:
    """Through submitit, tasks on this host run their parts of the cases; a bad case keeps its error."""
    text = SMALL.replace('"lublin:jobs=30"', '"lublin:jobs=30", "lublin:jobs=0"')
    found, into = study(tmp_path, text), folder(tmp_path)
    told: list[str] = []
    request = ArrayRequest(tasks=2, minutes=2, kind="local")
    run_on_slurm(found.cases, into, request, 60.0, lambda _, error: told.append(error))
    assert len(told) == 8
    assert sum(bool(error) for error in told) == 4
    assert len(into.left(found.cases)) == 4


@pytest.mark.usefixtures("interpreted")
def test_what_slurm_says_of_an_array_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sbatch refuses the array, its words are the error; no case has failed for that."""
    for name in ("sbatch", "srun"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = study(tmp_path)
    words = ["simulate", "sweep", str(tmp_path / "study.toml"), "-o", str(tmp_path / "study"), "--as-job"]
    assert main([*words, "--partition", "none"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "Slurm rejected the job array" in error
    assert "invalid partition" in error
    assert all(folder(tmp_path).result_of(case) is None for case in found.cases)


@pytest.mark.usefixtures("interpreted")
def test_a_task_that_ends_while_the_sweep_is_taken_up_again_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows come between two looks at it, and are not thrown away as an error of before."""
    submitit = pytest.importorskip("submitit", reason="the extra [sweep] is not installed")
    sweep, (case, *_) = folder(tmp_path), study(tmp_path).cases
    sweep.keep(case, error="of before")
    (sweep.path / NOTED).write_text(json.dumps([{"job": "7_0", "cases": [case.id]}]))
    looks = list[bool]()

    def done(_job: object, *, force_check: bool = False) -> bool:
        if not looks:
            sweep.keep(case, rows=[{"jobs": 30}], seconds=0.1)
        looks.append(force_check)
        return len(looks) > 1

    monkeypatch.setattr(submitit.SlurmJob, "done", done)
    told = dict[str, str]()
    run_on_slurm([case], sweep, ArrayRequest(1, 5), 60, lambda each, error: told.update({each.id: error}))
    assert told == {case.id: ""}
    assert (sweep.result_of(case) or {})["rows"] == [{"jobs": 30}]


@pytest.mark.usefixtures("interpreted")
def test_a_task_that_has_just_ended_is_not_submitted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that ends after the sweep has listed what is left is over with its rows: nothing is submitted for it."""
    submitit = pytest.importorskip("submitit", reason="the extra [sweep] is not installed")
    sweep, (case, other, *_) = folder(tmp_path), study(tmp_path).cases
    (sweep.path / NOTED).write_text(json.dumps([{"job": "7_0", "cases": [case.id, other.id]}]))

    def done(_job: object, *, force_check: bool = False) -> bool:
        assert force_check
        for each in (case, other):
            sweep.keep(each, rows=[{"jobs": 30}], seconds=0.1)
        return True

    monkeypatch.setattr(submitit.SlurmJob, "done", done)
    monkeypatch.setattr(submitit, "AutoExecutor", lambda **_: pytest.fail("submitted again"))
    told = dict[str, str]()
    run_on_slurm([case, other], sweep, ArrayRequest(1, 5), 60, lambda each, error: told.update({each.id: error}))
    assert told == {case.id: "", other.id: ""}
