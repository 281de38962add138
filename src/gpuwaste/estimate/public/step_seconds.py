"""The time of a step on one type of GPU from public measurements: its parts, added up."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from gpuwaste.estimate.public.coefficients import Coefficients, ConvolutionShares, Part
from gpuwaste.estimate.public.convolution_time import Convolutions, convolution_seconds
from gpuwaste.estimate.public.device_rates import HALF, DeviceRates, rates_of
from gpuwaste.estimate.public.operators import StepWork
from gpuwaste.estimate.public.product_time import Floats, Products, product_seconds
from gpuwaste.slurm.gpu_types import GpuType

TENSOR: Final = ConvolutionShares(direct=1.0, winograd=1.0, transforms=0.0)


@dataclass(slots=True)
class StepParts:
    """Seconds of one step by part, and of products and convolutions by the element type in which they run."""

    parts: dict[Part, float] = field(
        default_factory=lambda: dict.fromkeys(("products", "convolutions", "moved", "launches"), 0.0)
    )
    by_type: dict[str, float] = field(default_factory=dict)
    uncovered: float = 0.0
    """Seconds, at the peak, of products in types that nobody measured."""

    def seconds(self, factors: Mapping[Part, float] | None = None) -> float:
        """Return the sum, each part times its factor."""
        return sum(seconds * (factors or {}).get(part, 1.0) for part, seconds in self.parts.items())


def step_parts(work: StepWork, device: GpuType, known: Coefficients, *, compiled: bool) -> StepParts:
    """Return the parts of a step; `compiled`: by XLA, which multiplies f32 in TF32 where the GPU has it."""
    found = StepParts()
    for dtype in work.products:
        runs_as = _runs_as(dtype, device, tensor=compiled)
        _add(found, "products", runs_as, _products(work.products_of(dtype), runs_as, device, known))
    for dtype in work.convolutions:
        runs_as = _runs_as(dtype, device, tensor=True)
        _add(found, "convolutions", runs_as, _convolutions(work.convolutions_of(dtype), runs_as, device, known))
    moved = rates_of(device, "f32", known).moved
    mixed = known.half.moved if HALF & (work.products.keys() | work.convolutions.keys()) else 1.0
    for kind, amount in work.moved.items():
        found.parts["moved"] += amount / (moved * mixed * known.moved.get(kind, known.moved["*"]))
    found.parts["launches"] = work.launches * known.launch_s
    return found


def _add(found: StepParts, part: Part, runs_as: str, seconds: float) -> None:
    if runs_as in {"f32", "tf32"} | HALF:
        found.parts[part] += seconds
    else:
        found.uncovered += seconds
    found.by_type[runs_as] = found.by_type.get(runs_as, 0.0) + seconds


def _runs_as(dtype: str, device: GpuType, *, tensor: bool) -> str:
    """Return the type in which a product runs: convolutions of f32 take TF32 where the GPU has it (cuDNN)."""
    return "tf32" if dtype == "f32" and tensor and "tf32" in device.tflops else dtype


def _products(of: tuple[Products, Floats], dtype: str, device: GpuType, known: Coefficients) -> float:
    products, trips = of
    rates = _rates(device, dtype, known, known.half.products)
    return float((product_seconds(products, known.shape_of(device), rates) * trips).sum())


def _convolutions(of: tuple[Convolutions, Floats], dtype: str, device: GpuType, known: Coefficients) -> float:
    convolutions, trips = of
    rates = _rates(device, dtype, known, known.half.convolutions)
    shares = known.convolution if dtype == "f32" else TENSOR
    seconds = convolution_seconds(convolutions, known.shape_of(device), rates, shares, winograd=dtype == "f32")
    return float((seconds * trips).sum())


def _rates(device: GpuType, dtype: str, known: Coefficients, share: float) -> DeviceRates:
    """Return the rates of a type; of types in tensor cores only a share of the peak is known."""
    rates = rates_of(device, dtype, known)
    return rates if dtype == "f32" else replace(rates, peak=rates.peak * share, sustained=inf)
