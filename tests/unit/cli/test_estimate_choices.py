"""`gpuwaste estimate` with --batch, --gpus and --goal: the table, the hand-over to plan, wrong usage."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from tests.unit.estimate.programs import PRODUCT
from tests.unit.estimate.test_choices import row

from gpuwaste.cli.estimate_choices import _named
from gpuwaste.cli.main import main
from gpuwaste.estimate.choices import ON_MIG, chosen
from gpuwaste.estimate.program_answer import capacities_of
from gpuwaste.slurm.gpu_types import one_of, types_of

BATCHES: Final = Path(__file__).parents[2] / "fixtures" / "estimate" / "jax-batches.json"
"""What the JAX probe wrote with --batch 8,16,32."""


def test_the_smallest_request_is_handed_to_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory answers: one row is marked, with the lines of the script and the command of plan."""
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
    assert re.search(r"\* t4 1 32 513\.6 [\d.]+ - - fits", text)
    assert "time: from public FP32 measurements on this GPU type and 7 others" in text


def test_the_user_s_name_of_a_type_is_handed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A site whose gres says a100_40gb gets gpu:a100_40gb, not our name of that type: Slurm knows only its own."""
    words = ["--gpu", "a100_40gb", "--batch", "8", "--goal", "smallest", "--models-dir", str(tmp_path), "--json"]
    assert main(["estimate", str(BATCHES), *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["choices"][0]["gpu"] == "a100-40gb"
    assert document["script"][0] == "#SBATCH --gres=gpu:a100_40gb:1"
    assert document["plan"] == "gpuwaste plan -- --gres=gpu:a100_40gb:1 job.sbatch"


def test_a_name_of_several_types_is_handed_over_where_all_hold_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """gpu:a100 gets 40 or 80 GB: all are compared, and Slurm gets that name only for a request that fits on each."""
    words = ["--gpu", "a100", "--goal", "smallest", "--models-dir", str(tmp_path)]
    document = answered(capsys, str(BATCHES), "--batch", "8", *words)
    assert [row["gpu"] for row in document["choices"]] == [each.name for each in types_of("a100")]
    assert document["script"][0] == "#SBATCH --gres=gpu:a100:1"
    assert document["notes"][0] == f"--gpu a100 is {one_of(types_of('a100'))}: all are listed"
    small, large, alone = row("a100-40gb", 60, 0.4), row("a100-80gb", 60, 0.3), types_of("a100-80gb")
    assert (small.fits, large.fits) == ("does not fit", "fits")
    boards = [row("a100-pcie-40gb", 60, 0.4), row("a100-pcie-80gb", 60, 0.3)]
    assert _named({"a100": types_of("a100")}, large, [small, large, *boards]) == (large, {})
    assert _named({"our_a100": alone}, large, [large]) == (large, {"a100-80gb": "our_a100"})


def test_a_name_of_several_types_is_handed_over_with_the_time_of_the_slower() -> None:
    """The 80 GB type is faster and cheaper; gpu:a100 may be another, so the limit is that of the slowest."""
    times = {"a100-40gb": 0.35, "a100-80gb": 0.3, "a100-pcie-40gb": 0.4, "a100-pcie-80gb": 0.38}
    rows = [row(gpu, 8, step_s) for gpu, step_s in times.items()]
    assert chosen(rows, "fastest", {})[0] == 1
    assert _named({"a100": types_of("a100")}, rows[1], rows) == (rows[2], {"a100-pcie-40gb": "a100"})
    assert _named({"a100": types_of("a100")}, rows[1], rows[:3]) == (rows[1], {})


def test_without_times_the_default_goal_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Double precision, which nobody has published: nothing is marked; the note says which goal needs no times."""
    path = tmp_path / "double.hlo"
    path.write_text(PRODUCT.replace("f32[", "f64[").replace("64,", "6400,"), encoding="utf-8")
    assert main(["estimate", str(path), "--gpus", "1", "--models-dir", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert not any(row["chosen"] for row in document["choices"])
    assert (document["goal"], document["script"], document["plan"]) == ("cheapest", [], "")
    assert "--goal smallest needs only memory" in document["notes"][0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "holds several batch sizes: compare them with --goal"),
        (["--batch", "8,64"], "run the probe with --batch 8,16,32,64"),
        (["--batch", "x"], "'x': expected a number from 1"),
        (["--batch", ","], "--batch: expected numbers"),
        (["--gpus", "0"], "expected a number from 1"),
        (["--gpus", ",".join(map(str, range(1, 18)))], "17 numbers: at most 16"),
        (["--price", "h100=nan"], "expected TYPE=NUMBER"),
        (["--price", "h900=1"], "unknown GPU type"),
        (["--price", "a100=1,a100-40gb=2"], "two prices of a100-40gb"),
        (["--goal", "cheapest", "--steps", "9"], "different work: give --samples"),
    ],
)
def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str], words: list[str], expected: str) -> None:
    """What is wrong is said once, with exit code 2."""
    assert main(["estimate", str(BATCHES), *words]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the document of a comparison."""
    capsys.readouterr()
    assert main(["estimate", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def one_batch(folder: Path, place: int) -> str:
    """Write one of the probe's programs to a file of its own, named by its batch size."""
    program = json.loads(BATCHES.read_text(encoding="utf-8"))["programs"][place]
    path = folder / f"{program['batch']}.json"
    path.write_text(json.dumps(program), encoding="utf-8")
    return str(path)


def test_several_files_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each file with the batch size that it names; the chosen one's fingerprint is handed over."""
    small, large = one_batch(tmp_path, 0), one_batch(tmp_path, 2)
    words = ["--gpu", "t4", "--goal", "smallest", "--models-dir", str(tmp_path)]
    document = answered(capsys, small, large, small, *words)
    rows = [(row["file"], row["batch"], row["chosen"]) for row in document["choices"]]
    assert rows == [(small, 8, False), (large, 32, True)]
    alone = answered(capsys, large, *words)
    assert alone["choices"][0]["file"] == ""
    assert document["program"]["fingerprint"] == alone["program"]["fingerprint"]
    assert document["script"] == alone["script"]
    assert main(["estimate", small, large, *words]) == 0
    assert "GPUS FILE" in " ".join(capsys.readouterr().out.split())


def test_files_without_batch_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """HLO names no batch size: memory compares such files, time only among themselves, which a note says."""
    named, plain = one_batch(tmp_path, 0), []
    for size in (64, 128):
        plain.append(str(tmp_path / f"{size}.hlo"))
        Path(plain[-1]).write_text(PRODUCT.replace("64,", f"{size},"), encoding="utf-8")
    words = ["--gpu", "t4", "--models-dir", str(tmp_path)]
    assert len(answered(capsys, named, *plain, *words, "--goal", "smallest")["choices"]) == 3
    assert any("do not name their batch size" in note for note in answered(capsys, *plain, *words)["notes"])
    for more, expected in (([], "does not name its batch size, other files do"), (["--samples", "9"], "does not name")):
        assert main(["estimate", named, *plain, *words, *more]) == 2
        said = capsys.readouterr().err
        assert plain[0] in said
        assert expected in said


def test_mig_instances_are_choices_where_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --mig each size is a row for one instance, without a time; the smallest that fits is handed over."""
    words = [str(BATCHES), "--gpu", "a100_40gb", "--gpus", "1,2", "--batch", "8", "--goal", "smallest"]
    words += ["--models-dir", str(tmp_path)]
    assert {row["mig"] for row in answered(capsys, *words)["choices"]} == {""}
    document = answered(capsys, *words, "--mig")
    divided = [row for row in document["choices"] if row["mig"]]
    assert [row["mig"] for row in divided] == ["1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"]
    assert {(row["gpus"], row["step_s"], row["refused"]) for row in divided} == {(1, None, ON_MIG)}
    assert document["script"][0] == "#SBATCH --gres=gpu:a100_40gb_1g.5gb:1"
    assert capacities_of("a100_40gb_1g.5gb")[0][1] == divided[0]["capacity_b"]
    assert main(["estimate", *words, "--mig"]) == 0
    assert "no time on MIG instances: " in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('["h900=1"]', "[estimate] prices: 'h900': unknown GPU type"),
        ('["h100"]', "[estimate] prices: 'h100': expected TYPE=NUMBER"),
        ('["h100=-1"]', "[estimate] prices: 'h100=-1': expected TYPE=NUMBER"),
        ('["h100=1", "h100=2"]', "[estimate] prices: two prices of h100"),
        ('"h100=1"', "[estimate] prices: expected a list of strings"),
    ],
)
def test_wrong_prices_of_the_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, expected: str
) -> None:
    """One line says which entry of the configuration is wrong."""
    config = tmp_path / "gpuwaste.toml"
    config.write_text(f"[estimate]\nprices = {value}\n", encoding="utf-8")
    assert main(["estimate", str(BATCHES), "--goal", "cheapest", "--config", str(config)]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1


def test_a_file_without_a_batch_size_is_not_scaled(capsys: pytest.CaptureFixture[str]) -> None:
    """One program at an unnamed batch size: --batch and --samples say what to do."""
    one = BATCHES.with_name("jax-scan.json")
    for words, expected in ((["--batch", "8"], "one that it does not name"), (["--samples", "9"], "does not name its")):
        assert main(["estimate", str(one), *words]) == 2
        assert expected in capsys.readouterr().err
