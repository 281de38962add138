"""GPU types: memory, MIG sizes, bandwidth and peak arithmetic, a source for each number; and prices of a GPU-hour.

The table has peaks, and rates of large products that users have published. What a site's GPUs reach, it measures.
"""

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from math import isfinite
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.errors import ConfigError, UsageError
from gpuwaste.core.typed import convert

GIB: Final = 1 << 30
_MIG_UNLISTED: Final = 0.92  # of its share of memory, if no listing is known; listings have 0.95 to 0.99
_RUNS_AS: Final = {"f4": "f8", "f8": "f16", "i4": "i8"}  # all others: f32, which every type has
_F64_WITHOUT_UNITS: Final = 1 / 64  # of f32: GPUs whose sheet has no f64
_Positive = Annotated[float, Meta(gt=0)]
OPTION = "--price"
NumberFormat = Literal["f64", "f32", "tf32", "f16", "bf16", "f8", "f4", "i8", "i4"]
"""Element types for which data sheets give a rate; the types of programs are estimate/program.py's Dtype."""
MemoryKind = Literal["gddr5", "gddr6", "gddr6x", "hbm2", "hbm2e", "hbm3", "hbm3e"]


class MigSize(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One size of instance of a GPU that MIG divides."""

    name: str
    memory: Annotated[int, Meta(ge=1)]
    compute: Annotated[int, Meta(ge=1)]
    listed_gib: _Positive | None = None


class GpuType(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One type of GPU."""

    name: str
    title: str
    family: str
    """Architecture: calibration of one type is informative for another of the same family."""
    memory_gib: _Positive
    bandwidth_gb_s: _Positive
    tflops: dict[NumberFormat, _Positive]
    matrix_f32_tflops: _Positive | None = None
    """f32 products in matrix units at full precision, where the GPU has such (AMD CDNA)."""
    memory_kind: MemoryKind
    processors: Annotated[int, Meta(ge=1)]
    """Streaming multiprocessors, or compute units."""
    board_w: _Positive
    """Maximum board power of the data sheet, watts."""
    reaches: dict[NumberFormat, _Positive] = {}
    """TFLOP/s of large matrix products that users have published, without structured sparsity."""
    sources: dict[str, str]
    """For memory, bandwidth, tflops, board, processors, mig and reaches: a key of the table's sources."""
    aliases: list[str] = []
    """Other names: Slurm's gres types, NVML's names in small letters with underscores."""
    mig: list[MigSize] = []
    mig_slices: int = 0
    mig_compute: int = 0

    @property
    def memory_b(self) -> int:
        """Bytes that CUDA offers to a program."""
        return int(self.memory_gib * GIB)

    @property
    def bandwidth_b_s(self) -> float:
        """Bytes a second, peak."""
        return self.bandwidth_gb_s * 1e9

    def peak_flops(self, dtype: str) -> float:
        """Return peak FLOP/s of an element type; one without units on the GPU runs as the next wider one."""
        rates: dict[str, float] = {str(name): rate for name, rate in self.tflops.items()}
        if dtype == "f64" and dtype not in rates:
            return rates["f32"] * _F64_WITHOUT_UNITS * 1e12
        while dtype not in rates:
            dtype = _RUNS_AS.get(dtype, "f32")
        return rates[dtype] * 1e12


class _Table(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    sources: dict[str, str]
    several: dict[str, list[str]]
    device: list[GpuType]


@cache
def _table() -> _Table:
    text = resources.files(__package__).joinpath("gpu_types.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), _Table)


def devices() -> list[GpuType]:
    """Return all types of the table, oldest first."""
    return list(_table().device)


def sources() -> dict[str, str]:
    """Return the description of each source of the table."""
    return dict(_table().sources)


@cache
def _by_name() -> dict[str, GpuType]:
    return {_plain(name): device for device in _table().device for name in (device.name, *device.aliases)}


def find(name: str) -> GpuType | None:
    """Return the type of a name: the table's, a gres type, or NVML's name; None where several are possible."""
    return _by_name().get(_plain(name))


def types_of(name: str) -> list[GpuType]:
    """Return the types that a gres type may mean: a100 has 40 or 80 GB. Empty: none in the table has the name."""
    several = _table().several.get(_plain(name))
    found = [find(name)] if several is None else [find(each) for each in several]
    return [each for each in found if each is not None]


def types_asked(name: str, where: str = "--gpu") -> list[GpuType]:
    """Return the type that a user names, or all that it may mean. Raises UsageError that lists the known types."""
    found = find(name)
    types = types_of(name) if found is None else [found]
    if not types:
        known = ", ".join(each.name for each in _table().device)
        raise UsageError(f"{where}: {name[:60]!r}: unknown GPU type; known: {known}")
    return types


def device(name: str) -> GpuType:
    """Return the only type that a user's name may mean. Raises UsageError where it is unknown, or ambiguous."""
    types = types_asked(name)
    if len(types) > 1:
        raise UsageError(f"--gpu: {name[:60]!r} is {one_of(types)}: give one of them")
    return types[0]


def one_of(types: Iterable[GpuType]) -> str:
    """Return types as a text: a100-40gb or a100-80gb."""
    return " or ".join(each.name for each in types)


def mig_memory_b(of: GpuType, size: MigSize) -> int:
    """Return the bytes that an instance of this size offers: nvidia-smi's figure, else 92 % of its share of memory."""
    if size.listed_gib is not None:
        return int(size.listed_gib * GIB)
    return int(of.memory_b * size.memory / of.mig_slices * _MIG_UNLISTED)


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def given_prices(words: Iterable[str], where: str = OPTION) -> dict[str, float]:
    """Return the price of a GPU-hour by type; that of a100 is for both. Raises UsageError that begins with `where`."""
    found: dict[str, float] = {}
    for word in words:
        name, _, value = word.partition("=")
        price = _number(value)
        if price is None:
            raise UsageError(f"{where}: {word[:40]!r}: expected TYPE=NUMBER, the price of a GPU-hour")
        for device in types_asked(name, where):
            if device.name in found:
                raise UsageError(f"{where}: two prices of {device.name}: give one")
            found[device.name] = price
    return found


def site_prices(words: Iterable[str]) -> dict[str, float]:
    """Return the prices of section [estimate]. Raises ConfigError."""
    try:
        return given_prices(words, "prices")
    except UsageError as error:
        raise ConfigError(f"[estimate] {error}") from error


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value >= 0 else None
