"""A script that is tied to its program: `gpuwaste estimate`, `predict` and `plan` name which estimator speaks."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.hub_double import HubDouble
from tests.integration.cli.test_plan import here, hub, planned
from tests.unit.estimate.programs import PRODUCT
from tests.unit.plan.facts import SCRIPT

from gpuwaste.cli.main import main
from gpuwaste.testing.patience import patient

__all__ = ["here", "hub"]
ONE_GPU = SCRIPT.replace("a100:2", "a100:1")
RUNS = "/v1/programs/runs"
LARGE = PRODUCT.replace("64,128", "640000,128000").replace("128,32", "128000,32").replace("64,32", "640000,32")


WITHOUT = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "gpuwaste.estimate":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from gpuwaste.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def tie(here: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Write the program and return the option that `gpuwaste estimate` prints for it."""
    (here / "step.hlo").write_text(PRODUCT)
    capsys.readouterr()
    (here / "empty.toml").write_text("")
    assert main(["estimate", "step.hlo", "--steps", "500", "--json", "--config", "empty.toml"]) == 0
    comment: str = json.loads(capsys.readouterr().out)["comment"]
    return comment


def past(*run_s: int, **more: Any) -> dict[str, Any]:
    """Return own runs of so many seconds, one a day, as the hub gives them."""
    at = int(time.time()) - 100 * 86400
    values = {"name": "train.sh", "steps": 500, "gpus": 1, "gpu_type": "a100", **more}
    days = [at + day * 86400 for day in range(len(run_s))]
    return {"runs": [{"submit": d, "end": d + s, "run_s": s, **values} for d, s in zip(days, run_s, strict=True)]}


def scripted(here: Path, *lines: str) -> None:
    """Write the batch script with more lines."""
    head, _, rest = ONE_GPU.partition("\n")
    (here / "train.sh").write_text("\n".join([head, *lines, rest]))


def asked_for(found: dict[str, Any]) -> dict[str, Any]:
    """Return the program's part of the job as asked."""
    part: dict[str, Any] = next(one for one in found["candidates"] if one["kind"] == "as_asked")["program"]
    return part


def test_own_runs_of_a_tied_job_speak(here: Path, hub: HubDouble, tie: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the comment alone: the hub is asked for the hash, and plan and predict use the runs' time."""
    scripted(here, f"#SBATCH {tie}")
    hub.answers[RUNS] = past(1000, 1100, 1050)
    part = asked_for(planned(capsys, "train.sh"))
    fingerprint = tie.partition("program=")[2].partition(",")[0]
    assert (RUNS, {"program": fingerprint}) in hub.asked
    assert (part["estimator"], part["run_s"], part["runs"], part["refused"]) == ("own runs", 1050, 3, "")
    assert part["memory_b"] is None
    assert main(["predict", "--json", "train.sh", "--config", "gpuwaste.toml"]) == 0
    (prediction,) = json.loads(capsys.readouterr().out)["predictions"]
    assert prediction["program"]["estimator"] == "own runs"
    (walltime,) = [one for one in prediction["targets"] if one["target"] == "walltime"]
    assert (walltime["source"], walltime["quantiles"]["0.5"]) == ("own runs", 1050)
    assert main(["plan", "train.sh", "--config", "gpuwaste.toml"]) == 0
    assert "from your 3 earlier runs" in " ".join(capsys.readouterr().out.split())
    assert main(["predict", "train.sh", "--config", "gpuwaste.toml"]) == 0
    assert "from your 3 earlier runs" in " ".join(capsys.readouterr().out.split())


def test_the_line_of_a_script_gives_memory_and_the_comment_to_add(
    here: Path, hub: HubDouble, tie: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is read from the script's folder; without times on this host the history speaks."""
    scripted(here, "#GPUWASTE program=step.hlo steps=500")
    hub.answers[RUNS] = past()
    found = planned(capsys, "train.sh")
    part = asked_for(found)
    assert part["memory_low_b"] < part["memory_b"] < part["memory_high_b"]
    assert (part["fits"], part["estimator"], part["step_s"]) == ("fits", "history", None)
    assert any(f"add #SBATCH {tie}" in note for note in found["notes"])


def test_a_gpu_that_cannot_hold_the_program_is_invalid(
    here: Path, hub: HubDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arrays of 370 GB: neither an A100 nor an H100 holds them, and no candidate is valid."""
    (here / "large.hlo").write_text(LARGE)
    scripted(here, "#GPUWASTE program=large.hlo")
    found = planned(capsys, "train.sh", code=3)
    reasons = {one["kind"]: one["reasons"] for one in found["candidates"] if one["status"] == "invalid"}
    assert any("the program needs at least" in reason for reason in reasons["as_asked"])
    assert any("h100 has" in reason for reason in reasons["gpu_types"])


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("#GPUWASTE steps=5", "line 2 of the script: expected #GPUWASTE program=FILE steps=N"),
        ("#GPUWASTE program=nowhere.hlo", "nowhere.hlo: cannot be read"),
        ("#GPUWASTE program=/dev/zero", "/dev/zero: cannot be read"),
        ("#GPUWASTE program=train.sh", "not a program"),
    ],
)
def test_what_cannot_be_read_is_a_note(
    here: Path, hub: HubDouble, capsys: pytest.CaptureFixture[str], line: str, note: str
) -> None:
    """A wrong line, no file, a device, another file: the plan is made without it and says so in a line."""
    scripted(here, line)
    found = planned(capsys, "train.sh")
    assert any(note in said for said in found["notes"]), found["notes"]
    assert asked_for({"candidates": [{**one} for one in found["candidates"]]}) is None


def test_a_hub_that_knows_no_programs_is_a_note(
    here: Path, hub: HubDouble, tie: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An older hub answers 404, a broken one nonsense: the plan has no own runs and says why."""
    scripted(here, f"#SBATCH {tie}")
    found = planned(capsys, "train.sh")
    assert any("your earlier runs of the program are unknown" in note for note in found["notes"])
    hub.answers[RUNS] = {"runs": [{"submit": -1, "run_s": "x"}]}
    found = planned(capsys, "train.sh")
    assert any("your earlier runs of the program are unknown" in note for note in found["notes"])


@pytest.mark.parametrize("command", ["predict", "plan"])
def test_a_host_without_the_package_of_estimates_predicts_and_plans(
    here: Path, hub: HubDouble, tie: str, command: str
) -> None:
    """Whose job is tied to a program is told what to install; nobody else notices that it is not there."""
    hub.answers[RUNS] = past(1000, 1100)
    argv = [sys.executable, "-c", WITHOUT, command, "train.sh", "--config", "gpuwaste.toml"]
    for line, told in (("#", False), (f"#SBATCH {tie}", True)):
        scripted(here, line)
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=patient(120))
        assert done.returncode == 0, done.stderr
        assert ("install gpuwaste-estimate" in " ".join(done.stdout.split())) is told
