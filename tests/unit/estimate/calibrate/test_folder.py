"""The directory of a calibration: what the job runs, what stays when it is prepared again, what is refused."""

import json
import shlex
from pathlib import Path

import pytest

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.estimate.calibrate.calibration_folder import CalibrationJob, prepare, read_facts
from gpuwaste.estimate.calibrate.calibration_plan import FAMILIES, programs
from gpuwaste.estimate.calibrate.calibration_records import progress_of

JOB = CalibrationJob(gres="gpu:h100:1", python="/opt/jax env/bin/python", budget_minutes=50, partition="gpu")


def test_the_plan_has_400_programs_of_every_family_mode_and_precision() -> None:
    """At least 400 different programs; each family has both modes, three precisions, downsized and full ones."""
    plan = programs()
    assert len({each.id for each in plan}) == len(plan) >= 400
    for family in FAMILIES:
        of = [each for each in plan if each.family == family]
        assert {each.mode for each in of} == {"infer", "train"}
        assert {each.precision for each in of} == {"f32", "bf16", "f16"}
        assert {each.full for each in of} == {True, False}
        assert {(each.mode, each.precision) for each in of} >= {("train", "bf16"), ("infer", "bf16"), ("train", "f32")}


def test_any_first_part_of_the_plan_is_mixed() -> None:
    """A budget that ends early has measured every family about equally often."""
    first = [each.family for each in programs()[:80]]
    assert {first.count(family) for family in FAMILIES} == {10}


def test_the_plan_is_the_same_every_time() -> None:
    """A resumed calibration finds its programs by their ids."""
    assert programs() == programs()


def test_the_job_runs_the_site_s_python_on_one_gpu(tmp_path: Path) -> None:
    """The script asks for the GPU, a signal before its limit and a requeue, and runs the Python that was named."""
    text = prepare(tmp_path / "cal", "h100", JOB).read_text()
    assert "#SBATCH --gres=gpu:h100:1\n" in text
    assert "#SBATCH --time=65\n" in text
    assert "#SBATCH --signal=B:USR1@90\n" in text
    assert "#SBATCH --requeue\n" in text
    assert "#SBATCH --partition=gpu\n" in text
    words = shlex.split(text.splitlines()[-1])
    assert words[:3] == ["exec", "/opt/jax env/bin/python", f"{tmp_path}/cal/run.py"]
    assert words[words.index("--budget-s") + 1] == "3000"
    assert {path.name for path in (tmp_path / "cal").glob("*.py")} == {
        "run.py",
        "families.py",
        "jax_ops.py",
        "torch_ops.py",
        "torch_probe.py",
    }


def test_records_stay_when_the_directory_is_prepared_again(tmp_path: Path) -> None:
    """The job goes on after what was measured."""
    prepare(tmp_path, "h100", JOB)
    done = programs()[0].id
    (tmp_path / "records.jsonl").write_text(
        json.dumps({"id": done, "status": "started"})
        + "\n"
        + json.dumps({"id": done, "status": "failed"})
        + '\n{"id": '
    )
    prepare(tmp_path, "h100", JOB)
    assert progress_of(tmp_path) == 1
    assert read_facts(tmp_path).gpu == "h100"


def test_another_type_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    """Records of two types are never mixed."""
    prepare(tmp_path, "h100", JOB)
    with pytest.raises(GpuwasteError, match="contains a calibration of h100: give another directory with --output"):
        prepare(tmp_path, "a100-40gb", JOB)


@pytest.mark.parametrize("word", ["gpu:1\n#SBATCH --uid=0", "gpu 1", "x;y", "ü"])
def test_words_that_would_end_a_line_are_refused(tmp_path: Path, word: str) -> None:
    """What goes into a line of #SBATCH has no spaces, quotes or line ends."""
    with pytest.raises(GpuwasteError, match=r"--gres .*: expected letters"):
        prepare(tmp_path / "cal", "h100", CalibrationJob(gres=word, python="python3"))


def test_a_directory_that_sbatch_would_change_is_refused(tmp_path: Path) -> None:
    """A percent sign in a path is a pattern of sbatch's."""
    with pytest.raises(GpuwasteError, match="percent sign, backslash or line break"):
        prepare(tmp_path / "50%", "h100", JOB)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"gpu": "../x", "created_utc": 1}', '{"gpu": 3, "created_utc": 1}'])
def test_facts_that_are_none_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    """A damaged calibration.json names the file."""
    (tmp_path / "calibration.json").write_text(text)
    with pytest.raises(
        GpuwasteError,
        match=r"^[^\n]*calibration\.json: (not written by|cannot be read)[^\n]*gpuwaste model calibrate[^\n]*$",
    ):
        read_facts(tmp_path)
