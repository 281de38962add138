"""records.jsonl of a calibration: what is used of it, and what is left out with which words."""

import json
from pathlib import Path

import pytest

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.estimate.calibrate.calibration_records import read_records

GOOD = {"id": "a", "status": "ok", "family": "mlp", "program": "programs/a.hlo", "step_s": 0.01, "spread": 0.02}


def written(folder: Path, *records: object) -> Path:
    (folder / "programs").mkdir(exist_ok=True)
    (folder / "programs" / "a.hlo").write_text("HloModule a")
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_the_last_result_of_a_program_counts(tmp_path: Path) -> None:
    """A program measured twice is used once; a start after its result changes nothing."""
    started = {"id": "a", "status": "started"}
    folder = written(tmp_path, started, {**GOOD, "step_s": 1.0}, started, GOOD, {**GOOD, "gpu": "NVIDIA H100"}, started)
    usable, left_out = read_records(folder)
    assert [(each.step_s, each.hardware) for each in usable] == [(0.01, "NVIDIA H100")]
    assert not left_out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": "memory"}, "larger than the GPU's memory or the budget"),
        ({"status": "failed"}, "failed"),
        ({"status": "started"}, "ended the measuring process"),
        ({"step_s": None}, "failed"),
        ({"step_s": 0}, "not a record"),
        ({"step_s": "1"}, "not a record"),
        ({"spread": 0.9}, "with repeats that differ by more than 50 %"),
        ({"platform": "cpu"}, "measured on a CPU"),
        ({"gpu": "NVIDIA GeForce RTX 3090"}, "measured on rtx3090, not on h100"),
        ({"program": "programs/b.hlo"}, "without the program's file"),
        ({"program": "../../etc/passwd"}, "without the program's file"),
        ({"program": "/etc/passwd"}, "without the program's file"),
    ],
)
def test_a_record_without_a_good_measurement_is_left_out(tmp_path: Path, change: dict[str, object], why: str) -> None:
    """Each reason is counted in words, and no file outside of the directory is read."""
    usable, left_out = read_records(written(tmp_path, {**GOOD, **change}), "h100")
    assert usable == []
    assert dict(left_out) == {why: 1}


def test_a_line_cut_by_a_kill_is_one_lost_record(tmp_path: Path) -> None:
    """Half a line and binary data are counted, and the others are read."""
    usable, left_out = read_records(written(tmp_path, '{"id": "x", "sta', "?\x00", GOOD))
    assert [each.id for each in usable] == ["a"]
    assert left_out["not a record"] == 2


def test_no_records_say_which_directory_is_meant(tmp_path: Path) -> None:
    """A directory without records is named with what to do."""
    with pytest.raises(GpuwasteError, match=r"records\.jsonl: cannot be read: .*gpuwaste model calibrate"):
        read_records(tmp_path)
