"""The memory of a process on a GPU besides its program's arrays, from what runs of a known program used.

The difference between the most memory that a run used and what its program needs is the CUDA context, the workspaces
of libraries and what the framework's allocator keeps. The estimate's error is in it too, so programs with a wide range
are left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Final

from gpuwaste.core.units import format_size
from gpuwaste.estimate.hybrid import same_gpu
from gpuwaste.estimate.program_memory import MemoryEstimate, Overhead, preallocated
from gpuwaste.jobs.program_estimate import ProgramRun
from gpuwaste.slurm.gpu_types import GIB

LEAST_B: Final = GIB // 10
"""A CUDA context is not smaller: a smaller difference is an error of the estimate."""
MOST_B: Final = 4 * GIB
"""A larger difference is an allocator's cache, or another process on the GPU."""
MAX_WIDTH_B: Final = GIB // 2
"""Widest range of a program's own memory; with a wider one its error would count as context."""
MIN_RUNS: Final = 3
_TENTH: Final = 10


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The most memory that one run used of one GPU, and what its program needs without a context."""

    gpu: str
    used_b: int
    program_b: int


def overhead_on(gpu: str, uses: Iterable[MemoryUse]) -> Overhead | None:
    """Return context and workspaces on a type of GPU, None where fewer than MIN_RUNS runs show them.

    The median, with the 10 % and the 90 % quantile as range; of fewer than ten runs the least and the most.
    """
    sizes = sorted(use.used_b - use.program_b for use in uses if same_gpu(use.gpu, gpu))
    sizes = [size for size in sizes if LEAST_B <= size <= MOST_B]
    if len(sizes) < MIN_RUNS:
        return None
    cut, middle = len(sizes) // _TENTH, int(median(sizes))
    basis = f"context of {format_size(middle)} by {len(sizes)} runs on {gpu}"
    return Overhead(middle, sizes[cut], sizes[-1 - cut], basis)


def uses_of(runs: Iterable[ProgramRun], memory: MemoryEstimate) -> list[MemoryUse]:
    """Return what runs of one program on one GPU used, without those that show only what JAX allocates at its start."""
    if memory.program_high_b - memory.program_low_b > MAX_WIDTH_B:
        return []
    return [
        MemoryUse(run.gpu_type, run.gpu_mem_max_b, memory.program_b)
        for run in runs
        if run.gpus == 1 and run.gpu_mem_max_b and not preallocated(run.gpu_mem_max_b, run.gpu_mem_total_b)
    ]
