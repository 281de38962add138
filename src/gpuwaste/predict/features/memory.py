"""The peak memory of earlier jobs of each key, where accounting knows it, beside what is asked for."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group, by_key, joined
from gpuwaste.predict.recurrences import PEAK_UNIT_B
from gpuwaste.predict.rows import EWS

FEATURES = by_key(
    Feature("peak_1", "B", "the last of the {jobs} used {value} of memory at most"),
    Feature("peak_1_of_asked", "", "the last of the {jobs} used {value} of the memory asked for now"),
    Feature("peak_mean", "ln B", "{jobs} used e^{value} bytes of memory lately, as a logarithmic mean"),
)
_N = len(FEATURES) // 5


def compute(context: Context) -> Block:
    """Return the peaks of each key [n, keys * 3]."""
    rows = context.rows
    out = np.empty((*rows.shape, _N))
    np.multiply(rows["peak"].astype(np.float64), PEAK_UNIT_B, out=out[..., 0])
    np.divide(out[..., 0], context.requests[:, AT["mem_b"], None], out=out[..., 1])
    out[..., 2] = rows["ews"][..., EWS.index("peak_mean")]
    return joined(out)


GROUP = Group(FEATURES, compute)
