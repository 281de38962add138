"""Context and workspaces on a type of GPU, from what runs of a known program used."""

import pytest
from tests.unit.estimate.test_program_answer import run

from gpuwaste.estimate.process_overhead import MemoryUse, overhead_on, uses_of
from gpuwaste.estimate.program_memory import MemoryEstimate
from gpuwaste.slurm.gpu_types import GIB

SMALL = MemoryEstimate(0, 0, 0, 2 * GIB, "", program_low_b=2 * GIB - GIB // 8, program_high_b=2 * GIB + GIB // 8)


def uses(*contexts_gib: float, gpu: str = "a100-40gb") -> list[MemoryUse]:
    """Return runs of a program of 2 GiB with these contexts."""
    return [MemoryUse(gpu, int((2 + size) * GIB), 2 * GIB) for size in contexts_gib]


def test_the_median_of_runs_is_the_context() -> None:
    """Three runs: the middle one, from the least to the most; the basis names their number and the type."""
    found = overhead_on("a100-40gb", uses(0.5, 0.4, 0.75))
    assert found is not None
    assert (found.low_b, found.context_b, found.high_b) == (int(0.4 * GIB), GIB // 2, int(0.75 * GIB))
    assert found.basis == "context of 512.0 MiB by 3 runs on a100-40gb"


def test_a_tenth_at_each_end_is_left_out_of_the_range() -> None:
    """Ten runs, of which two are odd: the range is that of the other eight."""
    found = overhead_on("a100-40gb", uses(0.25, 3.5, *[0.5] * 8))
    assert found is not None
    assert found.low_b == found.context_b == found.high_b == GIB // 2


@pytest.mark.parametrize(
    "seen", [uses(0.5, 0.5), uses(0.5, 0.5, 0.01), uses(0.5, 0.5, 9), uses(0.5, 0.5, -1), uses(0.5, 0.5, 0.5, gpu="t4")]
)
def test_few_or_impossible_sizes_show_nothing(seen: list[MemoryUse]) -> None:
    """Two runs, sizes that are no context, runs on another type: the assumed context stays."""
    assert overhead_on("a100-40gb", seen) is None


def test_which_runs_show_what_a_process_needs() -> None:
    """One GPU, a known use, not 75 % of the memory; none where the program's own range is wider than a context."""
    runs = [run("t4", 2.5, 15), run("t4", 11.25, 15), run("t4", None, 15), run("t4", 2.5, 15, gpus=2)]
    assert uses_of(runs, SMALL) == [MemoryUse("t4", int(2.5 * GIB), 2 * GIB)]
    wide = MemoryEstimate(0, 0, 0, 20 * GIB, "", program_low_b=14 * GIB, program_high_b=25 * GIB)
    assert uses_of(runs, wide) == []
