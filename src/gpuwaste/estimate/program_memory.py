"""GPU memory that a program needs: a compiler's figure, or the sum of buffers alive at the same time, with a range.

Ranges without a compiler's figure are those observed on programs compiled for an H100 (`make bench NAME=estimate`):
168, of which 80 were compiled after the rules of liveness were written. Those of torch and ONNX are assumed, and the
basis states that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from gpuwaste.core.units import format_size
from gpuwaste.estimate.program import Program, peak_b
from gpuwaste.slurm.gpu_types import GIB, GpuType, devices, mig_memory_b

FitVerdict = Literal["fits", "does not fit", "too close to tell"]
MIB: Final = 1 << 20
PREALLOCATED: Final = 0.75
"""Share of a GPU's memory that JAX allocates at its start, whatever the program needs."""
_FLAT: Final = (PREALLOCATED - 0.02, PREALLOCATED + 0.02)


@dataclass(frozen=True, slots=True)
class Overhead:
    """The memory of a process on a GPU besides its arrays: the CUDA context, workspaces of libraries."""

    context_b: int
    low_b: int
    high_b: int
    basis: str


CONTEXTS_B: Final = (32 * MIB, 4 * GIB)
"""The least and the most that counts as the context and libraries of one process: other figures are of several."""
ASSUMED: Final = Overhead(GIB // 2, GIB // 4, GIB, "CUDA context assumed: 0.25 to 1 GiB, not measured here")
"""Without measurements. cuBLAS keeps up to 32 MiB of workspace on Hopper, which the upper end includes."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes of GPU memory, and their basis: those of the program, and what its process needs besides."""

    memory_b: int
    low_b: int
    high_b: int
    program_b: int
    """Without context and workspaces."""
    basis: str
    program_low_b: int = 0
    program_high_b: int = 0
    program_basis: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether the program fits on one GPU or one MIG instance."""

    gpu: str
    mig: str
    capacity_b: int
    verdict: FitVerdict


@dataclass(frozen=True, slots=True)
class _Range:
    low: float
    high: float
    basis: str
    more_b: int = 0
    """Added to the upper end: what copies and padding are in a small program."""


_COMPILED: Final = _Range(0.98, 1.05, "XLA's own figure for {target}")
_SCHEDULED: Final = _Range(
    0.73, 1.13, "estimated from the compiled program (on 168 programs 21 % below to 35 % above XLA, mean error 2 %)",
    4 * MIB,
)  # fmt: skip
_BEFORE: Final = _Range(
    0.70, 1.22, "estimated before compilation (on 168 programs 28 % below to 42 % above XLA, mean error 6 %)", 4 * MIB
)
_TORCH: Final = _Range(
    0.95, 1.30, "estimated from torch's arrays (the share of its allocator is assumed, not measured)"
)
_ONNX: Final = _Range(0.80, 1.50, "estimated from ONNX's arrays (the share of the runtime is assumed, not measured)")


def estimate_memory(program: Program, overhead: Overhead = ASSUMED) -> MemoryEstimate:
    """Return the memory that the program needs on a GPU."""
    found = _range(program)
    need = program.compiled.need_b if program.compiled is not None else peak_b(program.buffers)
    low, high = int(need * found.low), int(need * found.high) + found.more_b
    target = program.compiled.target if program.compiled is not None else ""
    basis = found.basis.format(target=target)
    own = MemoryEstimate(0, 0, 0, need, "", program_low_b=low, program_high_b=high, program_basis=basis)
    return with_overhead(own, overhead)


def with_overhead(estimate: MemoryEstimate, overhead: Overhead) -> MemoryEstimate:
    """Return the estimate of the same program with another context."""
    return replace(
        estimate,
        memory_b=estimate.program_b + overhead.context_b,
        low_b=estimate.program_low_b + overhead.low_b,
        high_b=estimate.program_high_b + overhead.high_b,
        basis=f"{estimate.program_basis}; {overhead.basis}",
    )


def measured_overhead(gpu: str, low_b: int, middle_b: int, high_b: int) -> Overhead:
    """Return what processes needed besides their arrays in a calibration of a GPU type."""
    between = f"{format_size(low_b)} to {format_size(high_b)}"
    return Overhead(middle_b, low_b, high_b, f"CUDA context: {between} in this site's calibration of {gpu}")


def _range(program: Program) -> _Range:
    if program.compiled is not None:
        return _COMPILED
    if program.source == "torch":
        return _TORCH
    if program.source == "onnx":
        return _ONNX
    return _SCHEDULED if program.optimized else _BEFORE


def verdict(estimate: MemoryEstimate, capacity_b: int) -> FitVerdict:
    """Return whether all of the range fits, none of it, or a part."""
    if estimate.high_b <= capacity_b:
        return "fits"
    return "does not fit" if estimate.low_b > capacity_b else "too close to tell"


def fits(
    estimate: MemoryEstimate, of: list[GpuType] | None = None, overheads: Mapping[str, Overhead] | None = None
) -> list[Fit]:
    """Return the verdict for each GPU type, and for each size of MIG instance it can be divided into.

    `overheads` are measured ones by type; a type without one keeps the estimate's own.
    """
    found: list[Fit] = []
    whole = estimate
    for device in devices() if of is None else of:
        measured = (overheads or {}).get(device.name)
        estimate = whole if measured is None else with_overhead(whole, measured)
        found.append(Fit(device.name, "", device.memory_b, verdict(estimate, device.memory_b)))
        for size in device.mig:
            capacity = mig_memory_b(device, size)
            found.append(Fit(device.name, size.name, capacity, verdict(estimate, capacity)))
    return found


def preallocated(used_b: int, total_b: int | None) -> bool:
    """Return whether a use is what JAX allocates at its start, or may be: it does not show what the program needs."""
    return not total_b or _FLAT[0] <= used_b / total_b <= _FLAT[1]
