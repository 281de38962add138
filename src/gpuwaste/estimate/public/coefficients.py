"""The coefficients that are shipped: read from coefficients.json, which `python -m tools.public_times` writes.

Fitted to measurements that others have published (`sources`, with their licences); no measurement is in the file.
"""

import json
from functools import cache
from importlib import resources
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.typed import convert
from gpuwaste.slurm.gpu_types import GpuType

FILE: Final = "coefficients.json"
_Share = Annotated[float, Meta(gt=0, le=2)]
_Positive = Annotated[float, Meta(gt=0)]
Part = Literal["products", "convolutions", "moved", "launches"]
"""Parts of a step that are corrected one by one."""


class MeasurementSource(Struct, kw_only=True, frozen=True):
    """Where measurements come from."""

    title: str
    authors: str
    licence: str
    url: str


class ProductShape(Struct, kw_only=True, frozen=True):
    """How well a generation of GPUs, with its libraries, divides a matrix product into tiles."""

    tiles: Annotated[list[tuple[_Positive, _Positive, _Share]], Meta(min_length=1, max_length=32)]
    """Rows, columns, share of the peak in a tile that is full."""
    head: Annotated[float, Meta(ge=0)]
    """Steps along the inner dimension that a tile costs besides its own."""
    rounding: Annotated[float, Meta(ge=0, le=1)]
    """How much of the idle part of the last wave of tiles counts: 0 nothing, 1 all of it."""
    least_inner: _Positive
    """Inner dimension that one of several parts of a tile has at least."""
    misaligned: Annotated[float, Meta(ge=0)]
    """Additional time where no dimension is a multiple of four."""
    long_row: Annotated[float, Meta(ge=0)]
    """Additional time for each doubling of the inner dimension above LONG_ROW."""
    reading: _Share
    """Share of the bandwidth with which operands are read."""
    overlap: _Positive
    """Exponent with which arithmetic and memory are joined: 1 one after the other, large: the longer of the two."""
    power_overlap: _Positive
    """The same for arithmetic and the limit of power."""


class ConvolutionShares(Struct, kw_only=True, frozen=True):
    """What f32 convolutions reach of the products that they consist of."""

    direct: _Share
    winograd: _Share
    transforms: Annotated[float, Meta(ge=0)]
    """Share of the time of moving what Winograd's method transforms that is not hidden."""


class HalfShares(Struct, kw_only=True, frozen=True):
    """Shares of peak and bandwidth in 16-bit programs, whose measurements have sums without shapes."""

    products: _Share
    convolutions: _Share
    moved: _Share
    training: _Positive
    """Factor of a training step."""


class Widths(Struct, kw_only=True, frozen=True):
    """Half widths of the 90 % interval, in the logarithm of time, by what is known of the GPU and the precision."""

    measured: _Positive
    unmeasured: _Positive
    tf32: _Positive
    half: _Positive
    half_training: _Positive
    compiled: _Positive
    """Added in squares where a compiler of its own choice of kernels runs the program (XLA)."""


class PublicError(Struct, kw_only=True, frozen=True):
    """Errors on steps of whole models, on GPUs that the fit had not seen."""

    steps: Annotated[int, Meta(ge=1, description="Measured steps.")]
    mean: Annotated[float, Meta(description="Mean absolute relative error.")]
    inside: Annotated[float, Meta(description="Share inside the 90 % interval.")]


class Coefficients(Struct, kw_only=True, frozen=True):
    """All that is shipped. Keys of families are GpuType.family, `hbm` and `gddr` are for the others."""

    version: str
    made: str
    sources: dict[str, MeasurementSource]
    measured: dict[str, list[str]]
    """GPU types of the table that were measured: the sources."""
    groups: dict[str, str]
    """Family: the key of its `products`."""
    products: dict[str, ProductShape]
    convolution: ConvolutionShares
    watts: dict[str, _Positive]
    """FLOP/s of f32 products that a watt of board power sustains, by family."""
    bandwidth: dict[str, _Share]
    """Share of the bandwidth that elementwise operations reach."""
    moved: dict[str, _Share]
    """Share of that, by kind of operation."""
    steps: dict[str, _Positive]
    """Measured over computed time of whole f32 steps, the median, of GPUs on which steps were measured."""
    launch_s: _Positive
    """Seconds that one operation takes at least."""
    half: HalfShares
    widths: Widths
    errors: dict[str, PublicError]
    """By case; see models/public_times/publish.py."""

    def shape_of(self, device: GpuType) -> ProductShape:
        """Return how products are divided on a GPU: as on the newest generation that was measured, if none is known."""
        return self.products[self.groups.get(device.family, self.groups["*"])]


@cache
def shipped() -> Coefficients:
    """Return the coefficients of this release."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return convert(json.loads(text), Coefficients)
