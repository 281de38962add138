"""The scripts of a calibration with real jax and torch on the CPU: each family runs, is read back, and goes on.

GPUWASTE_JAX_PYTHON and GPUWASTE_TORCH_PYTHON name a Python that has the framework; without one its tests are skipped.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.estimate.calibrate.calibration_folder import CalibrationJob, prepare
from gpuwaste.estimate.calibrate.calibration_plan import CalibrationProgram, about_b
from gpuwaste.estimate.calibrate.calibration_records import read_records
from gpuwaste.estimate.program import by_kind, op_sums
from gpuwaste.estimate.reading import read_program
from gpuwaste.testing.patience import patient

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

SIZES: dict[str, dict[str, int]] = {
    "mlp": {"batch": 8, "inputs": 16, "width": 32, "depth": 2, "outputs": 10},
    "cnn": {"batch": 2, "side": 16, "width": 8, "stages": 2, "depth": 1, "kernel": 3},
    "residual": {"batch": 2, "side": 32, "width": 16, "stages": 2, "depth": 1, "groups": -1},
    "transformer": {
        "batch": 2, "tokens": 8, "heads": 2, "width": 16, "depth": 1, "vocabulary": 50, "causal": 1,
    },
    "mixer": {"batch": 2, "tokens": 4, "inputs": 12, "width": 8, "depth": 1},
    "recurrent": {"batch": 2, "tokens": 5, "inputs": 6, "width": 8, "depth": 1, "outputs": 3, "lstm": 1},
    "unet": {"batch": 1, "side": 16, "width": 4, "stages": 2, "outputs": 2},
    "embedding": {
        "batch": 8, "tables": 2, "rows": 100, "width": 4, "bag": 3, "inputs": 5, "inner": 8, "depth": 1,
    },
}  # fmt: skip


def planned(families: tuple[str, ...] = tuple(SIZES)) -> list[CalibrationProgram]:
    return [
        CalibrationProgram(
            id=f"{family}-{mode}",
            family=family,
            mode=mode,
            precision="f32",
            full=False,
            sizes=SIZES[family],
            about_b=about_b(family, mode, "f32", SIZES[family]),
        )
        for family in families
        for mode in ("infer", "train")
    ]


@pytest.fixture(params=["jax", "torch"])
def framework(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if not os.environ.get(f"GPUWASTE_{name.upper()}_PYTHON"):
        pytest.skip(f"no GPUWASTE_{name.upper()}_PYTHON: a Python with {name}")
    return name


def measure(folder: Path, framework: str, budget_s: float = 500) -> subprocess.CompletedProcess[str]:
    """Run the script as the job does."""
    python = os.environ[f"GPUWASTE_{framework.upper()}_PYTHON"]
    argv = [python, str(folder / "run.py"), "--dir", str(folder), "--framework", framework, "--budget-s", str(budget_s)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=patient(580), check=False)


def prepared(folder: Path, plan: list[CalibrationProgram]) -> Path:
    prepare(folder, "l4", CalibrationJob(gres="gpu:1", python="python3"), plan)
    return folder


def records(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return [record for record in found if record["status"] != "started"]


def test_every_family_is_measured_and_read_back(tmp_path: Path, framework: str) -> None:
    """Inference and training of each family run, and their programs are read by the readers of users' programs."""
    folder = prepared(tmp_path, planned())
    said = measure(folder, framework)
    assert said.returncode == 0, said.stderr[-2000:]
    found = records(folder)
    assert {record["id"]: record["status"] for record in found} == {each.id: "ok" for each in planned()}
    for record in found:
        assert record["step_s"] > 0
        assert record["framework"].startswith(framework)
        assert op_sums(read_program(folder / record["program"])), record["id"]
    usable, left_out = read_records(folder, "l4")
    assert usable == []  # a CPU's times are none of a GPU
    assert left_out["measured on a CPU"] + sum(count for why, count in left_out.items() if "repeats" in why) == 16


def test_the_work_of_an_mlp_is_that_by_hand(tmp_path: Path, framework: str) -> None:
    """FLOPs of the products: batch times inputs times outputs of each layer, twice; training has about three times."""
    folder = prepared(tmp_path, planned(("mlp",)))
    assert measure(folder, framework).returncode == 0
    flops = {
        record["id"]: by_kind(op_sums(read_program(folder / record["program"])))["mm"].flops
        for record in records(folder)
    }
    forward = 2 * 8 * (16 * 32 + 32 * 32 + 32 * 10)
    first_input = 2 * 8 * 16 * 32  # the gradient by the data is not asked for
    assert flops == {"mlp-infer": forward, "mlp-train": 3 * forward - first_input}


def test_loops_count_with_their_trips(tmp_path: Path, framework: str) -> None:
    """A recurrent network over five tokens multiplies five times with what it keeps."""
    folder = prepared(tmp_path, planned(("recurrent",)))
    assert measure(folder, framework).returncode == 0
    program = read_program(folder / next(r["program"] for r in records(folder) if r["id"] == "recurrent-infer"))
    assert program.unknown_trips == 0
    products = by_kind(op_sums(program))["mm"].flops
    assert products == pytest.approx(2 * 2 * (5 * 32 * (6 + 8) + 5 * 8 * 3), rel=1e-9)


def test_a_budget_that_is_spent_starts_nothing_and_the_next_job_goes_on(tmp_path: Path, framework: str) -> None:
    """With no time left the exit code says that programs are left; the next run measures them, the one after none."""
    folder = prepared(tmp_path, planned(("mlp",)))
    first = measure(folder, framework, budget_s=-1)
    assert (first.returncode, (folder / "records.jsonl").exists()) == (3, False)
    assert "2 programs left; submit the job again" in first.stdout
    assert measure(folder, framework).returncode == 0
    size = (folder / "records.jsonl").stat().st_size
    again = measure(folder, framework)
    assert "2 of 2 programs done" in again.stdout
    assert (folder / "records.jsonl").stat().st_size == size
