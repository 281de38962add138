"""What a GPU reaches in programs, by its data sheet: arithmetic, limited by its power, and bandwidth."""

from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import Final

from gpuwaste.estimate.public.coefficients import Coefficients
from gpuwaste.slurm.gpu_rates import memory_class, memory_family, peak_of, published_flops
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
    """Return what a GPU reaches in products of an element type."""
    share = known.bandwidth.get(memory_family(device), known.bandwidth[memory_class(device)])
    moved = device.bandwidth_b_s * share
    if dtype == "f32":
        return replace(f32_rates(device, known.watts.get(memory_family(device), inf)), moved=moved)
    return DeviceRates(published_flops(device, dtype), inf, device.bandwidth_b_s, moved, device.processors)


def f32_rates(device: GpuType, watts: float) -> DeviceRates:
    """Return the rates of f32 products; `watts` are FLOP/s for a watt, infinite where the family was not measured.

    The limit is the geometric mean of that of power, if it is below the peak, and of what users have published of the
    GPU. Of its family it counts only where power is a limit, or unknown.
    """
    peak, bandwidth = peak_of(device, "f32"), device.bandwidth_b_s
    by_power = watts * device.board_w
    limited = watts == inf or by_power < peak
    published = published_flops(device, "f32") if "f32" in device.reaches or limited else inf
    limits = [limit for limit in (by_power, published) if limit < peak]
    return DeviceRates(peak, fmean_log(limits) if limits else inf, bandwidth, bandwidth, device.processors)


def fmean_log(values: list[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, values)) / len(values))
