"""GPU types and MIG slices as sizes: memory, the part of a GPU, and speed compared with another size.

Slurm names them by the site's gres types: a100, nvidia_h100_80gb_hbm3, 1g.10gb, a100_3g.40gb.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from gpuwaste.ledger.right_size.rule import GpuSpeed
from gpuwaste.slurm.gpu_rates import published_flops
from gpuwaste.slurm.gpu_types import GpuType, MigSize, devices, find, mig_memory_b, types_of

_MIG: Final = re.compile(r"(?:(.{1,64})[_.:-])?([1-7]g\.[0-9]{1,3}gb)(?:[.+]me)?", re.IGNORECASE | re.DOTALL)
_NEAR: Final = 0.1  # of memory: drivers and data sheets differ by less, sizes of one name by more
_ALIKE: Final = 0.15  # of f32 and bandwidth: a PCIe board of V100 or A100 is slower by less, one of H100 by more
_GENERAL: Final = ("f32", "tf32", "f16", "bf16")


@dataclass(frozen=True, slots=True)
class GpuSize:
    """A gres type, what the table knows of it, and the bytes that it offers to a program."""

    name: str
    memory_b: int
    device: GpuType
    mig: MigSize | None = None

    @property
    def part(self) -> float:
        """The part of a GPU that it takes: of memory or of arithmetic, whichever is larger."""
        if self.mig is None:
            return 1.0
        return max(self.mig.memory / self.device.mig_slices, self.mig.compute / self.device.mig_compute)


def size_of(name: str, measured_b: int | None, others: Collection[GpuType] = ()) -> GpuSize | None:
    """Return the size that a gres type names; None where the table does not have it, or several are possible.

    `measured_b` is what agents read as its memory, `others` are the site's full GPUs, one of which a slice is of.
    """
    sliced = _MIG.fullmatch(name)
    if sliced is None:
        exact = find(name)
        device = (exact and _only([exact], measured_b)) or _only(types_of(name), measured_b)
        return None if device is None else GpuSize(name, _smaller(device.memory_b, measured_b), device)
    slices = {each.name: slice_ for each in devices() for slice_ in each.mig if slice_.name == sliced[2].lower()}
    possible = [each for each in (types_of(sliced[1]) if sliced[1] else others) if each.name in slices]
    whole = _one(possible)
    if whole is None:
        return None
    device, mig = whole, slices[whole.name]
    return GpuSize(name, _smaller(mig_memory_b(device, mig), measured_b), device, mig)


def is_slice(name: str) -> bool:
    """Return whether a gres type names a MIG slice."""
    return _MIG.fullmatch(name) is not None


def speed_of(smaller: GpuSize, larger: GpuSize) -> GpuSpeed:
    """Return the speed of one size compared with another: the lowest ratio over the number formats of both sheets.

    Arithmetic is what users have published of large products: power limits small boards to half of their peak.
    Double precision is left out: few programs use it, and `slow_double` says where it decides.
    """
    formats = [kind for kind in _GENERAL if kind in smaller.device.tflops and kind in larger.device.tflops]
    compute = min(_flops(smaller, kind) / _flops(larger, kind) for kind in formats)
    return GpuSpeed(compute, _bandwidth(smaller) / _bandwidth(larger))


def slow_double(smaller: GpuSize, larger: GpuSize) -> bool:
    """Return whether double precision loses more than twice what other formats lose."""
    lost = _flops(smaller, "f64") / _flops(larger, "f64")
    return 2 * lost < speed_of(smaller, larger).compute


def _flops(size: GpuSize, kind: str) -> float:
    part = 1.0 if size.mig is None else size.mig.compute / size.device.mig_compute
    return (size.device.peak_flops(kind) if kind == "f64" else published_flops(size.device, kind)) * part


def _bandwidth(size: GpuSize) -> float:
    part = 1.0 if size.mig is None else size.mig.memory / size.device.mig_slices
    return size.device.bandwidth_b_s * part


def _only(possible: Collection[GpuType], measured_b: int | None) -> GpuType | None:
    if measured_b is not None:
        possible = [each for each in possible if abs(each.memory_b - measured_b) <= _NEAR * measured_b]
    return _one(possible)


def _one(possible: Collection[GpuType]) -> GpuType | None:
    """Return the only type, or the first of boards that differ too little to matter: SXM and PCIe of one size."""
    first = next(iter(possible), None)
    return first if first is not None and all(_alike(first, each) for each in possible) else None


def _alike(one: GpuType, other: GpuType) -> bool:
    pairs = ((one.tflops["f32"], other.tflops["f32"]), (one.bandwidth_gb_s, other.bandwidth_gb_s))
    near = abs(one.memory_b - other.memory_b) <= _NEAR * one.memory_b
    return one.family == other.family and near and all(abs(a - b) <= _ALIKE * a for a, b in pairs)


def _smaller(table_b: int, measured_b: int | None) -> int:
    return table_b if measured_b is None else min(table_b, measured_b)
