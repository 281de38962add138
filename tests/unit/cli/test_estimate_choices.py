"""`gpuwaste estimate` with --batch, --gpus and --goal: the table, the hand-over to plan, wrong usage."""

import json
from pathlib import Path
from typing import Final

import pytest

from gpuwaste.cli.main import main

BATCHES: Final = Path(__file__).parents[2] / "fixtures" / "estimate" / "jax-batches.json"
"""What the JAX probe wrote with --batch 8,16,32."""


def test_the_smallest_request_is_handed_to_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without times memory answers: one row is marked, with the lines of the script and the command of plan."""
    words = ["--gpu", "h100,t4", "--gpus", "1,2", "--batch", "8,32", "--goal", "smallest"]
    assert main(["estimate", str(BATCHES), *words, "--models-dir", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    marked = [row for row in document["choices"] if row["chosen"]]
    assert [(row["gpu"], row["gpus"], row["batch"]) for row in marked] == [("t4", 1, 32)]
    assert len(document["choices"]) == 8
    assert document["script"] == [
        "#SBATCH --gres=gpu:t4:1",
        f"#SBATCH --comment=gpuwaste:program={document['program']['fingerprint']}",
    ]
    assert document["plan"] == "gpuwaste plan -- --gres=gpu:t4:1 job.sbatch"
    assert main(["estimate", str(BATCHES), *words, "--models-dir", str(tmp_path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "* t4 1 32 514.1 MiB fits" in text
    assert "no time on h100, t4: no time model on this host" in text


def test_the_user_s_name_of_a_type_is_handed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A site whose gres says a100 gets gpu:a100, not our name of that type: Slurm knows only its own."""
    words = ["--gpu", "a100", "--batch", "8", "--goal", "smallest", "--models-dir", str(tmp_path), "--json"]
    assert main(["estimate", str(BATCHES), *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["choices"][0]["gpu"] == "a100-40gb"
    assert document["script"][0] == "#SBATCH --gres=gpu:a100:1"
    assert document["plan"] == "gpuwaste plan -- --gres=gpu:a100:1 job.sbatch"


def test_without_times_the_default_goal_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory is answered, nothing is marked, and the note says which goal needs no times."""
    assert main(["estimate", str(BATCHES), "--gpus", "1", "--models-dir", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert not any(row["chosen"] for row in document["choices"])
    assert (document["goal"], document["script"], document["plan"]) == ("cheapest", [], "")
    assert "--goal smallest needs memory only" in document["notes"][0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "holds several batch sizes: compare them with --goal"),
        (["--batch", "8,64"], "not scaled by guessing: run the probe with --batch 8,16,32,64"),
        (["--batch", "x"], "'x': expected a number from 1"),
        (["--batch", ","], "--batch: expected numbers"),
        (["--gpus", "0"], "expected a number from 1"),
        (["--gpus", ",".join(map(str, range(1, 18)))], "17 numbers: at most 16"),
        (["--price", "h100=nan"], "expected TYPE=NUMBER"),
        (["--price", "h900=1"], "unknown GPU type"),
        (["--goal", "cheapest", "--steps", "9"], "different work: give --samples"),
    ],
)
def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str], words: list[str], expected: str) -> None:
    """What is wrong is said once, with exit code 2."""
    assert main(["estimate", str(BATCHES), *words]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1


def test_a_file_without_a_batch_size_is_not_scaled(capsys: pytest.CaptureFixture[str]) -> None:
    """One program at an unnamed batch size: --batch and --samples say what to do."""
    one = BATCHES.with_name("jax-scan.json")
    for words, expected in ((["--batch", "8"], "one that it does not name"), (["--samples", "9"], "does not name its")):
        assert main(["estimate", str(one), *words]) == 2
        assert expected in capsys.readouterr().err
