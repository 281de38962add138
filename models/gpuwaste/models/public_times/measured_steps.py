"""NeuSight's measured steps of whole models, and its op graphs as programs in the neutral form."""

import ast
import csv
import io
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

from gpuwaste.estimate.program import Kind, Op, Program, fingerprint
from gpuwaste.slurm.gpu_types import find

F32_B: Final = 4
SEVERAL_GPUS: Final = re.compile(r"-[dpt]p\d")
DISTURBED: Final = 0.65
"""A forward pass longer than this share of the backward pass: more than twice the work's proportion, so disturbed."""
_ONE_LAYER: Final = re.compile(r"_(?:layer|layers|h)_0_")
_ANY_LAYER: Final = re.compile(r"_(?:layer|layers|h)_\d+_")
_BLOCK_ENDS: Final = frozenset({"Linear", "VECln", "EMBEDDING"})
_PHASES: Final = ("FwOps", "BwOps", "AccOps")
_TWO_OPERANDS: Final = frozenset({"VECadd", "VECmul", "VECdiv", "VECpow"})
_KINDS: Final[dict[str, Kind]] = {
    "VECln": "ln", "VECsoftmax": "softmax", "VECgelu": "act", "VECrelu": "act", "VECtanh": "act",
}  # fmt: skip
_VIEWS: Final = frozenset({"getitem", "VECadd", "VECaddu"})
"""Nodes whose MEM operations move nothing: slices that are views, gradients passed through an addition."""


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A measured step; `layers` of which the graph has one in training."""

    gpu: str
    case: str
    layers: int
    step_s: float
    forward_s: float
    backward_s: float

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.case.split("-")[0]

    @property
    def training(self) -> bool:
        """Whether it has a backward pass."""
        return "-train-" in self.case

    @property
    def compiled(self) -> bool:
        """Whether torch's compiler had fused it."""
        return self.case.endswith("-fusion")

    @property
    def disturbed(self) -> bool:
        """Whether forward and backward pass are out of proportion: something else was measured with them."""
        return self.training and self.forward_s > DISTURBED * self.backward_s


def steps(folder: Path) -> list[TimedStep]:
    """Return the measured steps on one GPU, of types of the table."""
    with (folder / "end_to_end.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if not SEVERAL_GPUS.search(row["case"])]
    found = []
    for row in rows:
        gpu = find(row["device"])
        if gpu is not None:
            times = (float(row[name]) / 1e3 for name in ("e2e_ms", "forward_ms", "backward_ms"))
            found.append(TimedStep(gpu.name, row["case"], int(float(row["num_layer"] or 0)), *times))
    return found


class OpGraphs:
    """The op graphs of an archive, by case; each is read once."""

    def __init__(self, archive: Path) -> None:
        with tarfile.open(archive) as file:
            members = [member for member in file.getmembers() if member.isfile()]
            self._texts = {Path(each.name).stem: _text(file, each) for each in members}

    def __contains__(self, case: str) -> bool:
        return case in self._texts

    def program(self, case: str, layers: int) -> Program:
        """Return a graph as a program whose repeated layer runs `layers` times."""
        return program_of(case, self._texts[case], layers)


def _text(file: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    content = file.extractfile(member)
    return "" if content is None else content.read().decode()


def program_of(case: str, text: str, layers: int) -> Program:
    """Return the graph in a CSV text as a program: f32 operations; trips are the layers of one that is repeated."""
    rows = list(csv.DictReader(io.StringIO(text)))
    repeated = _repeated(rows, layers)
    found = [op for place, row in enumerate(rows) for op in _ops(row, float(layers) if place in repeated else 1.0)]
    return Program(
        name=case, source="torch", ops=found, buffers=[], parameters_b=0, outputs_b=0, training="-train-" in case,
        fingerprint=fingerprint(found, []),
    )  # fmt: skip


def _repeated(rows: list[dict[str, str]], layers: int) -> range:
    """Return the rows of the only layer that a graph of training has, empty where it has all of them."""
    named = [place for place, row in enumerate(rows) if _ONE_LAYER.search(row["Name"])]
    if not layers or not named or len({m.group() for row in rows if (m := _ANY_LAYER.search(row["Name"]))}) > 1:
        return range(0)
    end = named[-1] + 1
    while end < len(rows) and rows[end]["OpName"] not in _BLOCK_ENDS and "getitem" not in rows[end]["Name"]:
        end += 1
    return range(named[0], end)


def _ops(row: dict[str, str], trips: float) -> Iterator[Op]:
    if row["OpName"] == "fused":
        if row["FwOps"] != "[]":
            shapes = [each for each in ast.literal_eval(row["InputShapes"]) if isinstance(each, tuple)]
            moved = _bytes(shapes), _bytes([ast.literal_eval(row["OutputShape"])])
            yield Op(kind="elem", name="fused", dtype="f32", bytes_read=moved[0], bytes_written=moved[1], trips=trips)
        return
    for phase in _PHASES:
        for name, sizes in ast.literal_eval(row[phase]):
            op = _op(name, sizes, row["OpName"], phase, trips)
            if op is not None:
                yield op


def _op(name: str, sizes: Any, node: str, phase: str, trips: float) -> Op | None:
    """Return one operation of the graph; None where it moves nothing."""
    if name in {"BMM", "Linear"}:
        return _product(name, (1, 1, *sizes)[-4:], trips)
    if name == "MEM":
        return None if node in _VIEWS else _moving(node, sizes, trips)
    if not name.startswith("VEC"):
        return None
    array = float(prod(sizes)) * F32_B
    gradient = phase == "BwOps" and name in _KINDS and name != "VECln"  # reads what the forward pass kept, too
    return Op(
        kind=_KINDS.get(name, "elem"), name=name, dtype="f32", trips=trips, bytes_written=array,
        bytes_read=array * (2 if name in _TWO_OPERANDS or gradient else 1),
    )  # fmt: skip


def _product(name: str, sizes: tuple[int, int, int, int], trips: float) -> Op:
    batch, rows, inner, columns = sizes
    shapes = ((batch, rows, columns), (batch, rows, inner), (batch, inner, columns))
    return Op(
        kind="bmm" if name == "BMM" else "mm", name=name, dtype="f32", flops=2.0 * batch * rows * inner * columns,
        bytes_read=_bytes(shapes[1:]), bytes_written=_bytes(shapes[:1]), trips=trips, shapes=shapes,
    )  # fmt: skip


def _moving(node: str, shapes: Any, trips: float) -> Op | None:
    moved = _bytes([each for each in shapes if isinstance(each, tuple)])
    if moved <= F32_B * len(shapes):
        return None
    return Op(kind="gather" if node == "EMBEDDING" else "copy", name=node, dtype="f32", bytes_read=moved, trips=trips)


def _bytes(shapes: Any) -> float:
    return float(sum(prod(shape) for shape in shapes)) * F32_B
