"""Waiting tasks of arrays, from Slurm's bitmap to what its commands print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.slurm.formats.hostlist import task_text


@pytest.mark.parametrize(
    ("bitmap", "printed"),
    [("0xF", "0-3"), ("0x155", "0,2,4,6,8"), ("0x23A", "1,3-5,9"), ("0x0", ""), ("0-3", "0-3"), ("", "")],
)
def test_a_bitmap_becomes_ranges(bitmap: str, printed: str) -> None:
    """As sacct 22.05 printed them for these very arrays; a text that is no bitmap stays."""
    assert task_text(bitmap) == printed


@given(st.sets(st.integers(0, 3000), min_size=1))
def test_no_task_is_lost(tasks: set[int]) -> None:
    """The ranges hold exactly the tasks of the bitmap."""
    found: set[int] = set()
    for part in task_text(hex(sum(1 << task for task in tasks))).split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == tasks
