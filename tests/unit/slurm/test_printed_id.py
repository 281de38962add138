"""Printed job ids: how many tasks one stands for."""

import pytest

from gpuwaste.slurm.formats.printed_run import task_count


@pytest.mark.parametrize(
    ("printed", "tasks"),
    [
        ("7", 1),
        ("3_1", 1),
        ("4+1", 1),
        ("3_[0-99]", 100),
        ("3_[0-99%4]", 100),
        ("3_[5]", 1),
        ("3_[1,4-6,9]", 5),
        ("3_[0-10:2]", 6),
        ("3_[1,3,5,...]", 3),
        ("3_[]", 1),
        ("3_[9-1]", 1),
        ("3_[x]", 1),
        ("", 1),
    ],
)
def test_an_array_s_record_stands_for_its_tasks(printed: str, tasks: int) -> None:
    """Ranges, steps and single tasks are counted; a limit is none; what Slurm cut off is not; others are one."""
    assert task_count(printed) == tasks
