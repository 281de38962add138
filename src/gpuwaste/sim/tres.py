"""TRES as columns: one row of numbers a job, a limit or a set of weights, in one order of names."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import ParseError
from gpuwaste.sim.cluster import ClusterModel

Floats = NDArray[np.float64]
CPU, MEM, NODE, BILLING = range(4)
"""Columns that every model has; memory is counted in bytes."""
BASE: Final = ("cpu", "mem", "node", "billing")
GPU: Final = "gres/gpu"
_MIB: Final = 2**20
_MEMORY_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_MOST_ITEMS: Final = 1000


def tres_names(model: ClusterModel) -> tuple[str, ...]:
    """Return the columns of a cluster: cpu, mem, node, billing, gres/gpu and each type of GPU by name."""
    types = {kind for node in model.nodes for kind in node.gpus if kind}
    return (*BASE, GPU, *(f"{GPU}:{kind}" for kind in sorted(types)))


def tres_row(names: Sequence[str], amounts: Mapping[str, float], absent: float = 0.0) -> Floats:
    """Return a row [len(names)] of amounts; `absent` where a name has none. Names that are no column are left out."""
    known = {name.lower(): amount for name, amount in amounts.items()}
    return np.array([known.get(name.lower(), absent) for name in names], dtype=np.float64)


def tres_weights(text: str) -> dict[str, float]:
    """Read TRESBillingWeights or PriorityWeightTRES: weights by TRES, of memory by the byte.

    Slurm counts memory in MiB here, `Mem=0.25G` is a quarter for each GiB (slurm.conf(5)). Raises ParseError.
    """
    weights: dict[str, float] = {}
    items = [item.strip() for item in text.split(",")]
    if len(items) > _MOST_ITEMS:
        raise ParseError(f"{len(items)} weights: at most {_MOST_ITEMS}")
    for item in items:
        if not item:
            continue
        name, _, amount = item.rpartition("=")
        name, unit = name.strip().lower(), 1.0
        if name == "mem":
            unit = 1.0 / _MIB
            if amount[-1:].upper() in _MEMORY_UNITS:
                unit = 1.0 / _MEMORY_UNITS[amount[-1].upper()]
                amount = amount[:-1]
        try:
            weight = float(amount) * unit
        except ValueError:
            raise ParseError(f"{item[:60]!r}: expected TRES=WEIGHT, such as CPU=1.0 or Mem=0.25G") from None
        if not name or not math.isfinite(weight):
            raise ParseError(f"{item[:60]!r}: expected TRES=WEIGHT, such as CPU=1.0 or Mem=0.25G")
        weights[name] = weight
    return weights
