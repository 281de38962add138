"""What a GPU reaches in programs, by its data sheet: arithmetic, limited by its power, and bandwidth."""

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from gpuwaste.estimate.public.coefficients import Coefficients
from gpuwaste.slurm.gpu_types import GpuType

HALF: Final = frozenset({"f16", "bf16"})


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """FLOP/s and bytes a second of one GPU for products of one element type."""

    peak: float
    sustained: float
    """FLOP/s that its power allows for long; infinite where it is no limit."""
    bandwidth: float
    """Bytes a second that the data sheet has."""
    moved: float
    """Bytes a second that elementwise operations reach."""
    processors: int


def rates_of(device: GpuType, dtype: str, known: Coefficients) -> DeviceRates:
    """Return what a GPU reaches in products of an element type; only of f32 is the limit of power known."""
    moved = device.bandwidth_b_s * known.reached(device)
    if dtype == "f32":
        return replace(f32_rates(device, known.watts.get(device.family, inf)), moved=moved)
    return DeviceRates(peak_of(device, dtype), inf, device.bandwidth_b_s, moved, device.processors)


def f32_rates(device: GpuType, watts: float) -> DeviceRates:
    """Return the rates of f32 products; `watts` are FLOP/s for a watt. Peak above the limit of power is never reached.

    A rate that users have published limits it, too.
    """
    peak, bandwidth = peak_of(device, "f32"), device.bandwidth_b_s
    sustained = min(watts * device.board_w, device.reaches.get("f32", inf) * 1e12)
    return DeviceRates(peak, sustained if sustained < peak else inf, bandwidth, bandwidth, device.processors)


def peak_of(device: GpuType, dtype: str) -> float:
    """Return peak FLOP/s of products: CDNA multiplies f32 in matrix units at full precision."""
    if dtype == "f32" and device.matrix_f32_tflops:
        return device.matrix_f32_tflops * 1e12
    return device.peak_flops(dtype)
