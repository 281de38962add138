"""NeuSight's measured steps of whole models, and its archive of op graphs."""

import csv
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.estimate.program import Program
from gpuwaste.models.public_times.op_graphs import program_of
from gpuwaste.slurm.gpu_types import find

SEVERAL_GPUS: Final = re.compile(r"-[dpt]p\d")
DISTURBED: Final = 0.65
"""A forward pass longer than this share of the backward pass: more than twice the work's proportion, so disturbed."""


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
