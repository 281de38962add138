"""What bench.estimate_time reads: timm's tables of real GPU times beside the op sums of its models."""

import csv
import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.program import OpSum
from gpuwaste.models.time_fit import Measurements, measurements

TABLE: Final = "benchmark-infer-amp-nchw-pt240-cu124-{gpu}.csv"
DTYPE: Final = "f16"  # the tables were measured with automatic mixed precision


class Graph(NamedTuple):
    """One model at one image size and batch, which both tables have."""

    sums: Mapping[str, OpSum]
    family: str
    configuration: tuple[float, ...]  # parameters (M), image size, batch: what a user knows without the graph


def read_graphs(folder: Path) -> tuple[list[Graph], dict[str, NDArray[np.float64]]]:
    """Return each different graph once, and the seconds of its step by GPU.

    A graph's sums are of one image: FLOPs and bytes are taken times the batch, executions are not.
    """
    tables = {gpu: _table(folder / TABLE.format(gpu=gpu)) for gpu in ("rtx3090", "rtx4090")}
    graphs: list[Graph] = []
    seconds: dict[str, list[float]] = {gpu: [] for gpu in tables}
    known = set()
    with lzma.open(folder / "op_sums.jsonl.xz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            found = {gpu: table.get((row["model"], row["img"])) for gpu, table in tables.items()}
            rows = [each for each in found.values() if each is not None]
            text = json.dumps(row["ops"], sort_keys=True)
            if len(rows) < len(tables) or text in known or len({each["infer_batch_size"] for each in rows}) > 1:
                continue
            known.add(text)
            graphs.append(_graph(row, rows[0]))
            for gpu, each in found.items():
                seconds[gpu].append(float(each["infer_step_time"]) / 1e3 if each else 0.0)
    return graphs, {gpu: np.array(values) for gpu, values in seconds.items()}


def rows_of(graphs: list[Graph], seconds: NDArray[np.float64]) -> Measurements:
    """Return the graphs as programs measured on one GPU."""
    pairs = zip(graphs, seconds.tolist(), strict=True)
    return measurements([(graph.sums, graph.family, each, False) for graph, each in pairs])


def _graph(row: Mapping[str, Any], measured: Mapping[str, str]) -> Graph:
    batch = float(measured["infer_batch_size"])
    sums = {
        f"{kind}/{DTYPE}": OpSum(count, flops * batch, (read + written) * batch)
        for kind, (count, flops, read, written) in row["ops"].items()
        if count
    }
    return Graph(sums, row["family"], (row["params"] / 1e6, float(row["img"]), batch))


def _table(path: Path) -> dict[tuple[str, int], dict[str, str]]:
    with path.open(newline="") as file:
        return {(row["model"].split(".")[0], int(row["infer_img_size"])): row for row in csv.DictReader(file)}
