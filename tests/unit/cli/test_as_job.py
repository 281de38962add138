"""`--as-job`: the same words without those about the job, in one sbatch command."""

import argparse
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpuwaste.cli.as_job import sbatch_words, submit_and_tell, without_own
from gpuwaste.cli.main import main
from gpuwaste.core.config import Config
from gpuwaste.core.errors import SlurmError
from gpuwaste.slurm.clients.command import CommandError, Output
from gpuwaste.slurm.submit import sbatch_run


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
    argv = sbatch_words(
        options(partition="cpu", accounts="proj", threads=4, time=60),
        "train",
        Path("/m/100%/.jobs"),
        ["train", "-S", "a b"],
    )
    assert "--output=/m/100%%/.jobs/train-%j.log" in argv
    assert {"--cpus-per-task=4", "--time=60", "--partition=cpu", "--account=proj", "--nice=1000"} <= set(argv)
    (wrapped,) = [word.removeprefix("--wrap=") for word in argv if word.startswith("--wrap=")]
    assert shlex.split(wrapped) == [sys.executable, "-m", "gpuwaste.cli", "train", "-S", "a b"]


def test_what_slurm_leaves_to_its_defaults_is_not_said() -> None:
    """Without --partition and -A there is no such option."""
    argv = sbatch_words(options(), "train", Path("/m"), ["train"])
    assert not [word for word in argv if word.startswith(("--partition", "--account"))]


def test_json_has_a_file_of_its_own() -> None:
    """With --json what the command says on stderr is not in the document's file."""
    argv = sbatch_words(options(json=True), "evaluate", Path("/m"), ["model", "evaluate", "--json"])
    assert {"--output=/m/evaluate-%j.log", "--error=/m/evaluate-%j.err"} <= set(argv)
    assert not [word for word in sbatch_words(options(), "evaluate", Path("/m"), []) if word.startswith("--error")]


def test_an_import_as_a_job_names_its_store(capsys: pytest.CaptureFixture[str]) -> None:
    """The hub's own store is on the hub's host: without --into nothing is submitted."""
    assert main(["history", "import", "--sacct-live", "--as-job", "--config", os.devnull]) == 2
    assert "--into" in capsys.readouterr().err


@dataclass(slots=True)
class Sbatch:
    """An sbatch that answers what it is told to; `argv` is how it was called."""

    argv: Sequence[str] = ()
    answer: Output | Exception = field(default_factory=lambda: Output(0, b"17\n", b""))

    def run(self, argv: Sequence[str], _env: Mapping[str, str], _timeout_s: float, _most_b: int) -> Output:
        """Answer."""
        self.argv = argv
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def sbatch(monkeypatch: pytest.MonkeyPatch) -> Sbatch:
    """Put one in the place of the process."""
    double = Sbatch()
    monkeypatch.setattr(sbatch_run, "run_command", double.run)
    return double


def submitted(logs: Path, **more: object) -> int:
    """Submit a training."""
    return submit_and_tell(options(command_line=["train", "--as-job"], **more), Config(), "train", logs)


@pytest.mark.parametrize(("out", "job"), [("17\n", "17"), ("17;gw\n", "17")])
def test_the_job_s_id_is_what_sbatch_prints(
    sbatch: Sbatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str, job: str
) -> None:
    """With the cluster's name or without; the log's name has it."""
    sbatch.answer = Output(0, out.encode(), b"")
    assert submitted(tmp_path / "logs") == 0
    assert sbatch.argv[0] == "sbatch"
    assert capsys.readouterr().out == f"submitted as job {job}; log: {tmp_path}/logs/train-{job}.log\n"


@pytest.mark.parametrize(
    ("code", "out", "err", "words"),
    [
        (1, "", "sbatch: error: invalid partition specified: cpu\n", "invalid partition"),
        (0, "Submitted batch job 17\n", "", "Submitted batch job 17"),
        (0, "", "", "Slurm rejected the job"),
    ],
)
def test_an_answer_that_is_no_job_is_an_error(  # noqa: PLR0917 four of a row, two fixtures
    sbatch: Sbatch, tmp_path: Path, code: int, out: str, err: str, words: str
) -> None:
    """One line with Slurm's words."""
    sbatch.answer = Output(code, out.encode(), err.encode())
    with pytest.raises(SlurmError, match=words):
        submitted(tmp_path)


@pytest.mark.parametrize("reason", ["sbatch: not found", "sbatch: no answer after 60 s", "sbatch: permission denied"])
def test_no_answer_is_an_error(sbatch: Sbatch, tmp_path: Path, reason: str) -> None:
    """No sbatch, one that hangs, one that may not be run: the line names the option and the reason."""
    sbatch.answer = CommandError(reason)
    with pytest.raises(SlurmError, match=f"train --as-job: .*{reason}"):
        submitted(tmp_path)
