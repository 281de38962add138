"""`--as-job`: the same words without those about the job, in one sbatch command."""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpuwaste.cli.as_job import command_of, submitted, without_own
from gpuwaste.cli.main import main
from gpuwaste.core.errors import SlurmError


def options(**more: object) -> argparse.Namespace:
    own = {"threads": 2, "time": 240, "partition": "", "accounts": None, "json": False}
    return argparse.Namespace(**{**own, **more})


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("train --as-job", "train"),
        ("train --challenge --as-job --partition cpu --time 60 -A proj", "train --challenge"),
        ("train --partition=cpu --time=60 --accounts=proj --as-job -S now-90days", "train -S now-90days"),
        ("train --as-job -Aproj --time-budget 600", "train --time-budget 600"),
        ("train --store '/a b/hub.duckdb' --as-job", "train --store '/a b/hub.duckdb'"),
    ],
)
def test_only_words_about_the_job_are_left_out(words: str, kept: str) -> None:
    """Whatever their form; values of other options stay, spaces included."""
    assert without_own(shlex.split(words)) == shlex.split(kept)


def test_the_job_runs_the_same_command() -> None:
    """In this Python, quoted as one shell line; the log's place is no pattern of sbatch's but for the job's id."""
    argv = command_of(
        options(partition="cpu", accounts="proj", threads=4, time=60),
        "train",
        Path("/m/100%/.jobs"),
        ["train", "-S", "a b"],
    )
    assert argv[0] == "sbatch"
    assert "--output=/m/100%%/.jobs/train-%j.log" in argv
    assert {"--cpus-per-task=4", "--time=60", "--partition=cpu", "--account=proj", "--nice=1000"} <= set(argv)
    (wrapped,) = [word.removeprefix("--wrap=") for word in argv if word.startswith("--wrap=")]
    assert shlex.split(wrapped) == [sys.executable, "-m", "gpuwaste.cli", "train", "-S", "a b"]


def test_what_slurm_leaves_to_its_defaults_is_not_said() -> None:
    """Without --partition and -A there is no such option."""
    argv = command_of(options(), "train", Path("/m"), ["train"])
    assert not [word for word in argv if word.startswith(("--partition", "--account"))]


def test_json_has_a_file_of_its_own() -> None:
    """With --json what the command says on stderr is not in the document's file."""
    argv = command_of(options(json=True), "evaluate", Path("/m"), ["evaluate", "--json"])
    assert {"--output=/m/evaluate-%j.log", "--error=/m/evaluate-%j.err"} <= set(argv)
    assert not [word for word in command_of(options(), "evaluate", Path("/m"), []) if word.startswith("--error")]


def test_an_import_as_a_job_names_its_store(capsys: pytest.CaptureFixture[str]) -> None:
    """The hub's own store is on the hub's host: without --into nothing is submitted."""
    assert main(["history", "import", "--sacct-live", "--as-job", "--config", os.devnull]) == 2
    assert "--into" in capsys.readouterr().err


def answering(code: int, out: str, err: str = "") -> object:
    def run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, code, out, err)

    return run


@pytest.mark.parametrize(("out", "job"), [("17\n", "17"), ("17;gw\n", "17")])
def test_the_job_s_id_is_what_sbatch_prints(out: str, job: str) -> None:
    """With the cluster's name or without."""
    assert submitted(["sbatch"], "train", answering(0, out)) == job  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "out", "err", "words"),
    [
        (1, "", "sbatch: error: invalid partition specified: cpu\n", "invalid partition"),
        (0, "Submitted batch job 17\n", "", "Submitted batch job 17"),
        (0, "", "", "did not take the job"),
    ],
)
def test_an_answer_that_is_no_job_is_an_error(code: int, out: str, err: str, words: str) -> None:
    """One line with Slurm's words."""
    with pytest.raises(SlurmError, match=words):
        submitted(["sbatch"], "train", answering(code, out, err))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "no"), subprocess.TimeoutExpired("sbatch", 60), PermissionError()]
)
def test_no_answer_is_an_error(error: Exception) -> None:
    """No sbatch, one that hangs, one that may not be run."""

    def run(_: Sequence[str]) -> subprocess.CompletedProcess[str]:
        raise error

    with pytest.raises(SlurmError, match="train --as-job"):
        submitted(["sbatch"], "train", run)
