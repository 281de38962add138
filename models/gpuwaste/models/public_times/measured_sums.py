"""timm's published step times of vision models under automatic mixed precision, beside the sums of their operations."""

import csv
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.estimate.program import OpSum

INFERENCE: Final = "benchmark-infer-amp-nchw-pt240-cu124-{gpu}.csv"
TRAINING: Final = "benchmark-train-amp-nchw-pt112-cu113-{gpu}.csv"

TWICE: Final = 2.0
"""The sums have four FLOPs for each multiply-add: resnet50 16.4 G where the table has 4.1 G multiply-adds."""


@dataclass(frozen=True, slots=True)
class TimedSums:
    """A measured step of a model, and its operations of one forward pass, by kind."""

    gpu: str
    model: str
    family: str
    sums: Mapping[str, OpSum]
    step_s: float
    training: bool


def timed_sums(folder: Path, gpu: str, *, training: bool) -> list[TimedSums]:
    """Return the models of a table whose operations are known. Sums are of one image, taken times the batch."""
    table = _table(folder / (TRAINING if training else INFERENCE).format(gpu=gpu), "train" if training else "infer")
    found = []
    with lzma.open(folder / "op_sums.jsonl.xz", "rt") as lines:
        for row in map(json.loads, lines):
            measured = table.get((row["model"], row["img"]))
            if measured is not None:
                step_s, batch = measured
                sums = {
                    kind: OpSum(count, flops / TWICE * batch, (read + written) * batch)
                    for kind, (count, flops, read, written) in row["ops"].items()
                    if count
                }
                found.append(TimedSums(gpu, row["model"], row["family"], sums, step_s, training))
    return found


def _table(path: Path, mode: str) -> dict[tuple[str, int], tuple[float, float]]:
    """Return seconds of a step and batch size by model and image size; empty where the table is not there."""
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        return {
            (row["model"].split(".")[0], int(row[f"{mode}_img_size"])): (
                float(row[f"{mode}_step_time"]) / 1e3, float(row[f"{mode}_batch_size"]),
            )
            for row in csv.DictReader(file)
        }  # fmt: skip
