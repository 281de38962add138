"""The programs that calibration measures: drawn once, the same on every site, in an order that may be cut anywhere.

Each family has downsized programs, which compile and run in seconds and cover the space of sizes, and full ones, of the
size that users train. The first N programs have the same mix as the complete plan: families alternate.
"""

import hashlib
import json
import math
import random
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

PER_FAMILY: Final = 60
FULL_EVERY: Final = 6  # every sixth program is full
_SEED: Final = 1
_MODES: Final = ("infer", "train")
_PRECISIONS: Final = ("bf16", "f32", "f16", "bf16", "f32")
_BYTES: Final = {"f32": 4, "bf16": 2, "f16": 2}
Sizes = dict[str, int]


class CalibrationProgram(Struct, kw_only=True, frozen=True):
    """One program of the plan, as site/run.py reads it."""

    id: str
    family: str
    mode: str
    precision: str
    full: bool
    sizes: Sizes
    about_b: int
    """A guess of the GPU memory it needs, for a memory budget; sometimes wrong by a factor of two."""


class _Draw:
    """Draws sizes between bounds: the upper ones for full programs, uniform in their logarithms."""

    def __init__(self, rng: random.Random, *, full: bool) -> None:
        self._rng, self.full = rng, full

    def size(self, least: int, most: int, full: int, step: int = 1) -> int:
        """Return a multiple of `step`; a full program's is between `most` and `full`."""
        low, high = (most, full) if self.full else (least, most)
        value = math.exp(self._rng.uniform(math.log(low), math.log(max(low, high))))
        return max(step, round(value / step) * step)

    def one(self, *values: int) -> int:
        """Return one of the values."""
        return self._rng.choice(values)


def _mlp(d: _Draw) -> Sizes:
    return {
        "batch": d.size(16, 1024, 8192, 8), "inputs": d.size(64, 1024, 4096, 16), "width": d.size(128, 2048, 8192, 64),
        "depth": d.size(1, 6, 16), "outputs": d.size(10, 1000, 4000),
    }  # fmt: skip


def _cnn(d: _Draw) -> Sizes:
    return {
        "batch": d.size(4, 32, 128), "side": d.size(32, 96, 224, 32), "width": d.size(16, 48, 64, 8),
        "stages": d.size(2, 3, 5), "depth": d.size(1, 2, 3), "kernel": d.one(3, 3, 5),
    }  # fmt: skip


def _residual(d: _Draw) -> Sizes:
    return {
        "batch": d.size(4, 32, 128), "side": d.size(32, 128, 224, 32), "width": d.size(16, 32, 64, 16),
        "stages": d.size(2, 3, 4), "depth": d.size(1, 2, 4), "groups": d.one(1, 1, 8, -1),
    }  # fmt: skip


def _transformer(d: _Draw) -> Sizes:
    heads = d.size(2, 8, 16)
    return {
        "batch": d.size(1, 8, 32), "tokens": d.size(32, 256, 1024, 32), "heads": heads, "width": heads * d.one(32, 64),
        "depth": d.size(1, 4, 16), "vocabulary": d.size(1000, 8000, 50000, 8), "causal": d.one(0, 1),
    }  # fmt: skip


def _mixer(d: _Draw) -> Sizes:
    return {
        "batch": d.size(4, 32, 128), "tokens": d.size(16, 64, 256, 4), "inputs": d.size(48, 192, 768, 16),
        "width": d.size(64, 256, 1024, 32), "depth": d.size(1, 4, 12),
    }  # fmt: skip


def _recurrent(d: _Draw) -> Sizes:
    return {
        "batch": d.size(8, 64, 256, 4), "tokens": d.size(8, 64, 256), "inputs": d.size(32, 256, 512, 8),
        "width": d.size(64, 512, 1024, 16), "depth": d.size(1, 2, 3), "outputs": d.size(10, 200, 1000),
        "lstm": d.one(0, 1),
    }  # fmt: skip


def _unet(d: _Draw) -> Sizes:
    return {
        "batch": d.size(1, 8, 32), "side": d.size(32, 96, 256, 32), "width": d.size(8, 32, 64, 8),
        "stages": d.size(2, 3, 4), "outputs": d.size(1, 4, 21),
    }  # fmt: skip


def _embedding(d: _Draw) -> Sizes:
    return {
        "batch": d.size(64, 2048, 16384, 16), "tables": d.size(2, 8, 26), "rows": d.size(1000, 50_000, 500_000, 100),
        "width": d.size(8, 32, 128, 8), "bag": d.size(1, 8, 32), "inputs": d.size(8, 32, 64),
        "inner": d.size(64, 512, 1024, 32), "depth": d.size(1, 3, 5),
    }  # fmt: skip


FAMILIES: Final[Mapping[str, Callable[[_Draw], Sizes]]] = {
    "mlp": _mlp, "cnn": _cnn, "residual": _residual, "transformer": _transformer, "mixer": _mixer,
    "recurrent": _recurrent, "unet": _unet, "embedding": _embedding,
}  # fmt: skip


def programs(per_family: int = PER_FAMILY) -> list[CalibrationProgram]:
    """Return the plan."""
    rngs = {family: random.Random(f"{_SEED} {family}") for family in FAMILIES}  # noqa: S311 not a secret
    found = []
    for number in range(per_family):
        for family, draw in FAMILIES.items():
            full = number % FULL_EVERY == FULL_EVERY - 1
            sizes = draw(_Draw(rngs[family], full=full))
            mode, precision = _MODES[number % len(_MODES)], _PRECISIONS[number % len(_PRECISIONS)]
            found.append(_program(family, number, mode, precision, sizes, full=full))
    return found


def _program(family: str, number: int, mode: str, precision: str, sizes: Sizes, *, full: bool) -> CalibrationProgram:
    text = json.dumps([family, mode, precision, sizes], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return CalibrationProgram(
        id=f"{family}-{number:03d}-{digest}", family=family, mode=mode, precision=precision, full=full, sizes=sizes,
        about_b=about_b(family, mode, precision, sizes),
    )  # fmt: skip


def about_b(family: str, mode: str, precision: str, s: Sizes) -> int:
    """Return roughly the bytes that a program needs: its parameters, and the activations that training keeps."""
    parameters, kept, largest = _COUNTS[family](s)
    item = _BYTES[precision]
    if mode == "train":
        return int(parameters * (4 + 4 + 4 + item) + kept * item * 2)
    return int((parameters + largest * 3) * item)


def _rows(s: Sizes, width: int) -> int:
    return s["batch"] * s.get("tokens", 1) * width


def _dense_counts(s: Sizes) -> tuple[int, int, int]:
    width, depth = s.get("width", 0), s["depth"]
    return s["inputs"] * width + depth * width * width + width * s["outputs"], _rows(s, width) * depth, _rows(s, width)


def _image_counts(s: Sizes) -> tuple[int, int, int]:
    first = s["batch"] * s["side"] ** 2 * s["width"]
    layers = s.get("depth", 2) * 3
    deep = (s["width"] * 4) << s["stages"]
    return deep * deep * layers, first * layers * 3, first * 2


def _transformer_counts(s: Sizes) -> tuple[int, int, int]:
    width, table = s["width"], s["vocabulary"] * s["width"]
    scores = s["batch"] * s["heads"] * s["tokens"] ** 2
    logits = _rows(s, s["vocabulary"])
    return 2 * table + 12 * s["depth"] * width**2, s["depth"] * (_rows(s, 16 * width) + 3 * scores) + 3 * logits, logits


def _mixer_counts(s: Sizes) -> tuple[int, int, int]:
    each = 8 * s["width"] ** 2 + 4 * s["tokens"] ** 2
    return s["depth"] * each, s["depth"] * _rows(s, 14 * s["width"]), _rows(s, 4 * s["width"])


def _recurrent_counts(s: Sizes) -> tuple[int, int, int]:
    return s["depth"] * 8 * s["width"] ** 2, s["depth"] * _rows(s, 12 * s["width"]), _rows(s, 4 * s["width"])


def _embedding_counts(s: Sizes) -> tuple[int, int, int]:
    looked = s["batch"] * s["tables"] * s["bag"] * s["width"]
    return s["tables"] * s["rows"] * s["width"] + s["depth"] * s["inner"] ** 2, looked * 2, looked


_COUNTS: Final[Mapping[str, Callable[[Sizes], tuple[int, int, int]]]] = {
    "mlp": _dense_counts, "cnn": _image_counts, "residual": _image_counts, "transformer": _transformer_counts,
    "mixer": _mixer_counts, "recurrent": _recurrent_counts, "unet": _image_counts, "embedding": _embedding_counts,
}  # fmt: skip
