"""TRES as columns: one row of numbers a job, a limit or a set of weights, in one order of names."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.slurm.site.cluster_model import ClusterModel

Floats = NDArray[np.float64]
CPU, MEM, NODE, BILLING = range(4)
"""Columns that every model has; memory is counted in bytes."""
BASE: Final = ("cpu", "mem", "node", "billing")
GPU: Final = "gres/gpu"


def tres_names(model: ClusterModel) -> tuple[str, ...]:
    """Return the columns of a cluster: cpu, mem, node, billing, gres/gpu and each type of GPU by name."""
    types = {kind for node in model.nodes for kind in node.gpus if kind}
    return (*BASE, GPU, *(f"{GPU}:{kind}" for kind in sorted(types)))


def tres_row(names: Sequence[str], amounts: Mapping[str, float], absent: float = 0.0) -> Floats:
    """Return a row [len(names)] of amounts; `absent` where a name has none. Names that are no column are left out."""
    known = {name.lower(): amount for name, amount in amounts.items()}
    return np.array([known.get(name.lower(), absent) for name in names], dtype=np.float64)
