"""NeuSight's measured operators: each kind's sizes and seconds, by the table's types of GPU.

The files' columns B, M, N, K are batch, rows, inner dimension and columns, as in the op graphs of the same data; of
vectors, B rows of H elements. Latencies are of one launch seen from the host: a constant of 20 to 80 us is in them.
"""

import csv
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.public.convolution_time import Convolutions
from gpuwaste.estimate.public.operators import moved_kind
from gpuwaste.estimate.public.product_time import Products
from gpuwaste.slurm.gpu_types import find

Floats = NDArray[np.float64]
T = TypeVar("T")
DISAGREEING: Final = frozenset({("p4", "ops_linear")})
"""Files of a GPU that contradict the others by factors."""
KIND_OF: Final = {
    "add": "elem", "addu": "elem", "mul": "elem", "mulu": "elem", "div": "elem", "divu": "elem", "pow": "elem",
    "powu": "elem", "relu": "act", "tanh": "act", "gelu": "act", "softmax": "softmax", "ln": "ln",
}  # fmt: skip
"""The files of vectors, and the kinds of programs that they are."""
_TEST_VECTORS: Final = ("ops_test_vec", "ops_test_elem", "ops_test_ln", "ops_test_softmax")
TWO_OPERANDS: Final = frozenset({"add", "div", "mul", "pow"})


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """Operations of one file and one GPU, and the seconds of each [n]."""

    gpu: str
    kind: str
    of: T
    seconds: Floats
    test: bool
    """Of sizes that are in no training file."""


def _rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the table's name of the GPU, and a row. Raises OSError, lzma.LZMAError."""
    with lzma.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            device = find(row["Device"])
            if device is not None:
                yield device.name, row


def _tables(path: Path, columns: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
    """Return the columns and the seconds of a file [columns + 1, n] by GPU."""
    found: dict[str, list[list[float]]] = {}
    for gpu, row in _rows(path):
        found.setdefault(gpu, []).append([*(float(row[name]) for name in columns), float(row["Latency"]) / 1e3])
    return {gpu: np.array(rows).T for gpu, rows in found.items()}


def products(folder: Path) -> list[Timed[Products]]:
    """Return matrix products and batched ones."""
    found = []
    for stem in ("ops_bmm", "ops_linear", "ops_test_bmm", "ops_test_linear"):
        for gpu, table in _tables(folder / f"{stem}.csv.xz", ("B", "M", "N", "K")).items():
            if (gpu, stem) not in DISAGREEING:
                kind = "bmm" if stem.endswith("bmm") else "mm"
                batch, rows, inner, columns = table[:4]
                of = Products(batch, rows, inner, columns, np.full(table.shape[1], 4.0))
                found.append(Timed(gpu, kind, of, table[4], "test" in stem))
    return found


def convolutions(folder: Path) -> list[Timed[Convolutions]]:
    """Return convolutions, all of 3 x 3 with stride 1."""
    names = ("B", "Input_Channel", "Output_Channel", "Kernel_Szie", "Input_Size")
    found = []
    for gpu, table in _tables(folder / "ops_conv.csv.xz", names).items():
        images, channels, columns, kernel, side, seconds = table
        zeros = np.zeros_like(images)
        of = Convolutions(images, side, side, channels, columns, kernel**2, zeros, zeros + 4)
        found.append(Timed(gpu, "conv", of, seconds, test=False))
    return found


def vectors(folder: Path) -> list[Timed[Floats]]:
    """Return operations that move data, as bytes read and written, by kind."""
    rows: dict[tuple[str, str, bool], dict[tuple[str, ...], list[float]]] = {}
    for stem in (*(f"ops_{name}" for name in KIND_OF), *_TEST_VECTORS):
        for gpu, row in _rows(folder / f"{stem}.csv.xz"):
            arrays = 3 if row["OPName"] in TWO_OPERANDS else 2
            moved = 4 * arrays * float(row["B"]) * float(row["H"])
            key = row["B"], row["H"], row["Latency"]  # the test files repeat rows
            kind = moved_kind(KIND_OF[row["OPName"]], float(row["H"]))
            rows.setdefault((gpu, kind, "test" in stem), {})[(row["OPName"], *key)] = [
                moved,
                float(row["Latency"]) / 1e3,
            ]
    found = []
    for (gpu, kind, test), each in rows.items():
        table = np.array(list(each.values())).T
        found.append(Timed(gpu, kind, table[0], table[1], test))
    return found
