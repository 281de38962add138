"""Step times from the command line: a calibration's directory, training, the models in use, an estimate with a time."""

import json
import re
from pathlib import Path

import pytest

from gpuwaste.cli.main import main

pytestmark = pytest.mark.long

HLO = """HloModule p, entry_computation_layout={{(f32[{n},{n}]{{1,0}}, f32[{n},{n}]{{1,0}})->f32[{n},{n}]{{1,0}}}}

ENTRY main {{
  a = f32[{n},{n}]{{1,0}} parameter(0)
  b = f32[{n},{n}]{{1,0}} parameter(1)
  c = f32[{n},{n}]{{1,0}} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT d = f32[{n},{n}]{{1,0}} exponential(c)
}}
"""


def seconds(n: int) -> float:
    """Return what a product of this size takes on the GPU of this test."""
    return 2e-5 + 2 * n**3 / 1e13 + 20 * n**2 / 5e11


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    """Return a calibration of the L4."""
    return calibrated(tmp_path / "cal", "l4", "NVIDIA L4")


def calibrated(folder: Path, gpu: str, title: str) -> Path:
    """Return a calibration as a job leaves it: 60 products of matrices, and one record of a CPU."""
    assert main(["model", "calibrate", "--gpu", gpu, "-o", str(folder), "--no-submit"]) == 0
    (folder / "programs").mkdir()
    lines = []
    for number in range(60):
        n = 128 + 48 * number
        (folder / "programs" / f"{n}.hlo").write_text(HLO.format(n=n))
        record = {"id": f"p{n}", "status": "ok", "family": f"f{number % 5}", "program": f"programs/{n}.hlo"}
        lines.append({**record, "step_s": seconds(n), "gpu": title, "driver": "570.1", "framework": "jax 0.10"})
        lines[-1]["context_b"] = (400 + number) << 20
    lines.append({**lines[0], "id": "cpu", "platform": "cpu", "gpu": ""})
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_from_a_calibration_to_a_time(calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Train twice, look, roll back, estimate: the time is near the truth; another type has public measurements."""
    models = ["--models-dir", str(tmp_path / "models")]
    capsys.readouterr()
    assert main(["model", "train", "--times", str(calibration), "--name", "first", *models]) == 0
    text = capsys.readouterr().out
    assert "l4: 60 programs measured on l4" in text
    assert "first is in use now" in text
    assert main(["model", "train", "--times", str(calibration), "--name", "second", "--json", *models]) == 0
    card = json.loads(capsys.readouterr().out)
    assert (card["name"], card["promoted"]) == ("second", False)
    assert card["types"][0]["left_out"] == {"measured on a CPU": 1}
    assert card["types"][0]["hardware"] == "NVIDIA L4, driver 570.1, jax 0.10"
    assert main(["model", "promote", "--times", "second", *models]) == 0
    assert main(["model", "rollback", "--times", *models]) == 0
    assert "champion: first" in capsys.readouterr().out
    assert main(["model", "list", "--times", "--json", *models]) == 0
    assert [row["rows"] for row in json.loads(capsys.readouterr().out)["models"]] == [60, 60]
    assert main(["model", "show", "--times", *models]) == 0
    assert "## l4" in capsys.readouterr().out

    asked = tmp_path / "asked.hlo"
    asked.write_text(HLO.format(n=1500))
    assert main(["estimate", str(asked), "--gpu", "l4", "--steps", "1000", "--json", *models]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["step_s"] == pytest.approx(seconds(1500), rel=0.1)
    assert document["run_s"] == pytest.approx(1000 * document["step_s"])
    assert document["gpus"][0]["step_low_s"] <= document["step_s"] <= document["gpus"][0]["step_high_s"]
    assert main(["estimate", str(asked), "--gpu", "l4,l40s", *models]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "time on l4: 60 programs measured on l4" in text
    assert re.search(r"time on l40s: from public [^*]*; corrected by this site's measurements of l4", text)


def test_the_cheapest_request_by_measured_times(
    calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a price the cheapest row has run time, cost and a time limit at the upper end of its interval."""
    models = ["--models-dir", str(tmp_path / "models")]
    assert main(["model", "train", "--times", str(calibration), "--name", "first", *models]) == 0
    (tmp_path / "asked.hlo").write_text(HLO.format(n=1500))
    capsys.readouterr()
    words = ["--gpu", "l4,t4", "--gpus", "1,2", "--goal", "cheapest", "--steps", "1000000", "--price", "l4=0.5"]
    assert main(["estimate", str(tmp_path / "asked.hlo"), *words, *models, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    best = next(row for row in document["choices"] if row["chosen"])
    assert (best["gpu"], best["gpus"]) == ("l4", 1)
    assert best["run_s"] == pytest.approx(1e6 * seconds(1500), rel=0.1)
    assert best["cost"] == pytest.approx(best["run_s"] / 3600 * 0.5)
    days, clock = document["script"][1].removeprefix("#SBATCH --time=").split("-")
    hours, minutes = clock.split(":")
    limit_s = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60
    assert best["run_high_s"] <= limit_s < best["run_high_s"] + 60
    assert document["script"][2].endswith(f"program={document['program']['fingerprint']},steps=1000000")
    assert document["plan"] == f"gpuwaste plan --goal cheapest -- --gres=gpu:l4:1 --time={days}-{clock} job.sbatch"
    one, two = (next(row for row in document["choices"] if (row["gpu"], row["gpus"]) == ("l4", n)) for n in (1, 2))
    assert (two["copies"], two["steps"]) == (2, 500_000)
    assert one["step_s"] < two["step_s"] < two["step_high_s"]
    assert "2 GPUs data parallel over PCIe 4.0 x16 (24 of 31.5 GB/s" in two["basis"]
    assert two["gpu_hours"] == pytest.approx(2 * two["run_s"] / 3600)
    assert main(["estimate", str(tmp_path / "asked.hlo"), *words, *models]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "GPU-HOURS COST FITS" in text or "GPU-MINUTES COST FITS" in text
    assert "time: several GPUs data parallel over PCIe 3.0 x16" in text
    assert "* time: 60 programs measured on l4 * time:" in text
    assert "no price for t4: not compared" in text


def test_several_gpus_by_the_site_s_links(
    calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A poor link of the site lengthens the step of copies; a pipeline keeps the steps; 32 GPUs are in no node."""
    models = ["--models-dir", str(tmp_path / "models")]
    assert main(["model", "train", "--times", str(calibration), "--name", "first", *models]) == 0
    (tmp_path / "asked.hlo").write_text(HLO.format(n=1500))
    (tmp_path / "gpuwaste.toml").write_text('[estimate]\nlinks = ["l4=2"]\n')
    words = ["estimate", str(tmp_path / "asked.hlo"), "--gpu", "l4", "--gpus", "1,4,32", "--steps", "1000", *models]
    found = []
    for more in ([], ["--config", str(tmp_path / "gpuwaste.toml")], ["--pipeline", "8"]):
        capsys.readouterr()
        assert main([*words, *more, "--goal", "fastest", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        one, four, many = document["choices"]
        assert many["step_s"] is None
        assert "no node has more than 16 GPUs" in many["refused"]
        found.append((four, next(row["gpus"] for row in document["choices"] if row["chosen"]), document["notes"]))
    (sheet, _, _), (poor, _, _), (staged, best, notes) = found
    assert sheet["step_s"] < poor["step_s"]
    assert (sheet["steps"], poor["steps"], staged["steps"]) == (250, 250, 1000)
    assert best == 4
    assert staged["step_s"] < one["step_s"]
    assert any("not measured" in note for note in notes)


def test_prices_of_the_site(calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prices of the configuration make cheapest a matter of cost; --price goes before them, type by type."""
    models = ["--models-dir", str(tmp_path / "models")]
    assert main(["model", "train", "--times", str(calibration), "--name", "first", *models]) == 0
    (tmp_path / "asked.hlo").write_text(HLO.format(n=1500))
    (tmp_path / "gpuwaste.toml").write_text('[estimate]\nprices = ["l4=1000", "t4=1"]\n')
    words = [
        "estimate",
        str(tmp_path / "asked.hlo"),
        "--gpu",
        "l4,t4",
        "--goal",
        "cheapest",
        "--steps",
        "1000",
        "--json",
    ]
    words += [*models, "--config", str(tmp_path / "gpuwaste.toml")]
    for more, cheapest, price in (([], "t4", 1), (["--price", "t4=1e6"], "l4", 1000)):
        capsys.readouterr()
        assert main([*words, *more]) == 0
        document = json.loads(capsys.readouterr().out)
        (best,) = [row for row in document["choices"] if row["chosen"]]
        assert best["gpu"] == cheapest
        assert best["cost"] == pytest.approx(price * best["gpu_hours"])
        assert any("[estimate] prices of this host's configuration" in note for note in document["notes"])


def test_a_calibration_goes_on_or_says_how(calibration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same command again counts what is done; another type in the same directory is refused."""
    capsys.readouterr()
    assert main(["model", "calibrate", "--gpu", "L4", "-o", str(calibration), "--no-submit"]) == 0
    text = capsys.readouterr().out
    assert "0 of 480 programs done" in text  # none of the records is of the plan
    assert f"sbatch {calibration}/job.sh" in text
    assert main(["model", "calibrate", "--gpu", "h100", "-o", str(calibration), "--no-submit"]) == 2
    assert "a calibration of l4" in capsys.readouterr().err


def test_training_without_measurements_says_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory without records, and one that is no calibration, are one line each."""
    folder = tmp_path / "cal"
    assert main(["model", "calibrate", "--gpu", "l4", "-o", str(folder), "--no-submit"]) == 0
    capsys.readouterr()
    for place, words in ((folder, "records.jsonl: cannot be read"), (tmp_path, "calibration.json: cannot be read")):
        assert main(["model", "train", "--times", str(place), "--models-dir", str(tmp_path / "models")]) == 1
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") <= 2  # the stage, and the error


def test_a_broken_bundle_costs_the_time_only(
    calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Memory is estimated though the models of times cannot be read, and the reason is there."""
    models = ["--models-dir", str(tmp_path / "models")]
    assert main(["model", "train", "--times", str(calibration), "--name", "first", *models]) == 0
    (tmp_path / "models" / "times" / "first" / "l4.npz").write_bytes(b"")
    (tmp_path / "asked.hlo").write_text(HLO.format(n=1500))
    capsys.readouterr()
    assert main(["estimate", str(tmp_path / "asked.hlo"), "--gpu", "l4", "--json", *models]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["memory_b"] > 0
    assert "l4.npz: its checksum is not the one in manifest.json" in document["refused"]


def test_the_context_is_that_of_the_calibration(
    calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Processes needed 400 to 459 MiB on the L4: estimates and comparisons use that there, and assume it elsewhere."""
    models = ["--models-dir", str(tmp_path / "models")]
    assert main(["model", "train", "--times", str(calibration), "--name", "first", *models]) == 0
    (tmp_path / "asked.hlo").write_text(HLO.format(n=1500))
    asked = ["estimate", str(tmp_path / "asked.hlo"), "--json", *models]
    capsys.readouterr()
    assert main([*asked, "--gpu", "l4"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["context_b"] == 430 << 20
    assert document["memory_low_b"] == document["program_low_b"] + (400 << 20)
    assert "400.0 MiB to 459.0 MiB in this site's calibration of l4" in document["basis"]
    assert main([*asked, "--gpu", "l4,t4", "--goal", "smallest"]) == 0
    choices = json.loads(capsys.readouterr().out)
    need = {row["gpu"]: row["memory_b"] for row in choices["choices"]}
    assert need["l4"] == document["memory_b"] < need["t4"]
    assert "calibration of l4" in choices["memory_basis"]
    assert "assumed" in choices["memory_basis"]
