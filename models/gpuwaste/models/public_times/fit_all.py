"""Fits all coefficients, from all measured GPUs or without one of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final, Self

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpuwaste.estimate.public.coefficients import (
    Coefficients,
    ConvolutionShares,
    HalfShares,
    MeasurementSource,
    ProductShape,
    Widths,
)
from gpuwaste.estimate.public.convolution_time import Convolutions
from gpuwaste.estimate.public.device_rates import f32_rates, rates_of
from gpuwaste.estimate.public.product_time import Products
from gpuwaste.models.public_times.fit_half import fit_half
from gpuwaste.models.public_times.fit_moved import fit_convolutions, shares_of_bandwidth, shares_of_kinds
from gpuwaste.models.public_times.fit_products import fit_products, shape_of, watts_of
from gpuwaste.models.public_times.measured_operators import Timed, convolutions, products, vectors
from gpuwaste.models.public_times.measured_steps import OpGraphs, TimedStep, steps
from gpuwaste.models.public_times.measured_sums import TimedSums, timed_sums
from gpuwaste.slurm.gpu_rates import memory_class, memory_family
from gpuwaste.slurm.gpu_types import device

VERSION: Final = "1"
LAUNCH_S: Final = 5e-6
"""A kernel's launch and its first and last microseconds; the measured latencies have the host's time in them."""
UNMEASURED_MOVES: Final = 0.9
"""Share for kinds that the data do not have: copies, gathers, reductions; assumed a little below elementwise work."""
POWER_FAMILIES: Final = ("pascal hbm", "pascal gddr", "volta hbm", "turing gddr", "ampere hbm", "cdna hbm")
"""Those that were measured: what a watt computes was about the same in all."""
GROUPS: Final = {"pascal": "pascal", "volta": "volta", "turing": "volta", "ampere": "ampere", "*": "ampere"}
SOURCES: Final = {
    "neusight": MeasurementSource(
        title="NeuSight: Predicting Deep Learning Performance on GPUs, artifact of ASPLOS 2025",
        authors="Georgia Institute of Technology and Microsoft",
        licence="MIT",
        url="https://github.com/sitar-lab/NeuSight",
    ),
    "timm": MeasurementSource(
        title="PyTorch Image Models, published benchmark tables",
        authors="Ross Wightman and contributors",
        licence="Apache-2.0",
        url="https://github.com/huggingface/pytorch-image-models",
    ),
}
FAR_BELOW: Final = 0.8
NO_WIDTHS: Final = Widths(measured=0.2, unmeasured=0.3, tf32=0.5, half=0.5, half_training=0.5, compiled=0.1)
"""Until they are judged."""


@dataclass(frozen=True, slots=True)
class PublicMeasurements:
    """All that is measured by others."""

    products: list[Timed[Products]]
    vectors: list[Timed[NDArray[np.float64]]]
    convolutions: list[Timed[Convolutions]]
    steps: list[TimedStep]
    graphs: OpGraphs
    sums: list[TimedSums]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read neusight/ and timm/ of a folder. Raises OSError, ValueError."""
        operators, models = folder / "neusight", folder / "timm"
        tables = (("rtx3090", False), ("rtx4090", False), ("rtx3090", True))
        return cls(
            products(operators), vectors(operators), convolutions(operators), steps(operators),
            OpGraphs(operators / "opgraphs.tar.xz"),
            [each for gpu, training in tables for each in timed_sums(models, gpu, training=training)],
        )  # fmt: skip

    @property
    def gpus(self) -> list[str]:
        """The GPU types whose operators were measured."""
        return sorted({each.gpu for each in self.products})


class Fits:
    """Fits of the same measurements without one or the other GPU, each made once."""

    def __init__(self, of: PublicMeasurements) -> None:
        self.of = of
        self._known: dict[frozenset[str], Coefficients] = {}

    def coefficients(self, without: Collection[str] = ()) -> Coefficients:
        """Return the coefficients without some GPUs, that no number depends on."""
        there = {*self.of.gpus, *(each.gpu for each in self.of.sums)}
        left_out = frozenset(without) & there
        if left_out not in self._known:
            self._known[left_out] = self._fitted(left_out)
        return self._known[left_out]

    def _fitted(self, without: frozenset[str]) -> Coefficients:
        measured = [each for each in self.of.products if each.gpu not in without]
        watts = watts_of(measured)
        groups = self._shapes(measured, watts)
        moving = [each for each in self.of.vectors if each.gpu not in without]
        reached = shares_of_bandwidth(moving)
        moved = {**shares_of_kinds(moving, reached), "*": UNMEASURED_MOVES}
        known = Coefficients(
            version=VERSION, made="", sources=SOURCES, measured=self._measured(without), groups=GROUPS,
            products=groups,
            convolution=ConvolutionShares(direct=1.0, winograd=1.0, transforms=0.2),
            watts=dict.fromkeys(POWER_FAMILIES, watts),
            bandwidth=_by_family(reached), moved=moved, steps={}, launch_s=LAUNCH_S,
            half=HalfShares(products=0.6, convolutions=0.4, moved=1.0, training=3.0), widths=NO_WIDTHS, errors={},
        )  # fmt: skip
        return self._with_convolutions(self._with_half(known, without), without)

    def _shapes(self, measured: Sequence[Timed[Products]], watts: float) -> dict[str, ProductShape]:
        """Return the shape of each group; all GPUs together are the start of each.

        A GPU far below its peak for its power shows nothing about tiles: a group of only such has the shape of all.
        """
        rates = {each.gpu: f32_rates(device(each.gpu), watts) for each in measured}
        whole = fit_products(measured, rates)
        found = {}
        for group in dict.fromkeys(GROUPS.values()):
            chosen = [
                each
                for each in measured
                if GROUPS[device(each.gpu).family] == group
                and rates[each.gpu].sustained > FAR_BELOW * rates[each.gpu].peak
            ]
            found[group] = shape_of(fit_products(chosen, rates, whole) if chosen else whole)
        return found

    def _measured(self, without: frozenset[str]) -> dict[str, list[str]]:
        neusight = {*self.of.gpus, *(each.gpu for each in self.of.steps)}
        found = {gpu: ["neusight"] for gpu in neusight} | {each.gpu: ["timm"] for each in self.of.sums}
        return {gpu: sources for gpu, sources in sorted(found.items()) if gpu not in without}

    def _with_convolutions(self, known: Coefficients, without: frozenset[str]) -> Coefficients:
        chosen = [each for each in self.of.convolutions if each.gpu not in without]
        shapes: Mapping[str, ProductShape] = {each.gpu: known.shape_of(device(each.gpu)) for each in chosen}
        rates = {each.gpu: rates_of(device(each.gpu), "f32", known) for each in chosen}
        return replace(known, convolution=fit_convolutions(chosen, shapes, rates))

    def _with_half(self, known: Coefficients, without: frozenset[str]) -> Coefficients:
        chosen = [each for each in self.of.sums if each.gpu not in without]
        return replace(known, half=fit_half(chosen, known)) if chosen else known


def _by_family(reached: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of the bandwidth by family and by kind of memory, means of the GPUs."""
    found: dict[str, list[float]] = {}
    for gpu, share in reached.items():
        one = device(gpu)
        for key in (memory_family(one), memory_class(one)):
            found.setdefault(key, []).append(share)
    return {key: fmean(shares) for key, shares in sorted(found.items())}
