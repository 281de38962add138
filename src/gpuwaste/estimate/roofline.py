"""The additive roofline: a step's time as a sum over what it executes, computes and moves.

Seconds = a constant + for each kind and element type: executions, FLOPs and bytes, each with a coefficient that is not
negative. The coefficients are fitted to measured programs (gpuwaste.models.time_fit); here they are only used.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.program import OpSum
from gpuwaste.slurm.gpu_types import GpuType

Floats = NDArray[np.float64]
PARTS: Final = 3  # executions, FLOPs, bytes
LAUNCH_S: Final = 5e-6  # of one execution, without measurements: the order of magnitude of a kernel's launch


def keys_of(programs: Iterable[Mapping[str, OpSum]], least: int = 1) -> tuple[str, ...]:
    """Return each "kind/dtype" that at least `least` of these programs execute, sorted."""
    having = Counter(key for sums in programs for key, found in sums.items() if found.count > 0)
    return tuple(sorted(key for key, programs_with in having.items() if programs_with >= least))


def work_of(programs: Sequence[Mapping[str, OpSum]], keys: Sequence[str]) -> Floats:
    """Return executions, FLOPs and bytes by program and key [n, k, 3]; other keys are left out."""
    work = np.zeros((len(programs), len(keys), PARTS))
    places = {key: place for place, key in enumerate(keys)}
    for row, sums in enumerate(programs):
        for key, found in sums.items():
            if key in places:
                work[row, places[key]] = (found.count, found.flops, found.bytes)
    return work


@dataclass(frozen=True, slots=True)
class Roofline:
    """`coefficients` [k, 3]: seconds for each execution, FLOP and byte of a key."""

    keys: tuple[str, ...]
    coefficients: Floats
    constant_s: float

    def parts(self, work: Floats) -> Floats:
        """Return seconds by program and key [n, k], without the constant."""
        found: Floats = np.einsum("nkp,kp->nk", work, self.coefficients)
        return found

    def seconds(self, work: Floats) -> Floats:
        """Return seconds by program [n]."""
        found: Floats = self.parts(work).sum(axis=1) + self.constant_s
        return found

    def scaled(self, executions: float, flops: Callable[[str], float], moved: float) -> "Roofline":
        """Return the roofline of another GPU, by factors of an execution, of a FLOP by element type, of a byte."""
        by_key = [(executions, flops(key.partition("/")[2]), moved) for key in self.keys]
        factors = np.array(by_key, dtype=np.float64).reshape(-1, PARTS)
        return Roofline(self.keys, self.coefficients * factors, self.constant_s * executions)


def between(source: GpuType, target: GpuType) -> tuple[float, Callable[[str], float], float]:
    """Return the factors of `Roofline.scaled` by the table of devices: a launch takes the same time on both."""
    moved = source.bandwidth_b_s / target.bandwidth_b_s
    return 1.0, lambda dtype: source.peak_flops(dtype) / target.peak_flops(dtype), moved


def sheet_seconds(key: str, work: OpSum, device: GpuType) -> float:
    """Return the least time that the data sheet allows for this work, plus a launch for each execution."""
    computing = work.flops / device.peak_flops(key.partition("/")[2])
    return max(computing, work.bytes / device.bandwidth_b_s) + work.count * LAUNCH_S
