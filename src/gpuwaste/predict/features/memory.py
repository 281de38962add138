"""The peak memory of earlier jobs of each key, where accounting knows it, beside what is asked for."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group
from gpuwaste.predict.recurrences import PEAK_UNIT_B
from gpuwaste.predict.rows import EWS, LASTS

FEATURES = (
    Feature("peak_1", "B", "the last of the {jobs} used {value} of memory at most"),
    Feature("peak_1_of_asked", "", "the last of the {jobs} used {value} of the memory asked for now"),
    Feature("peak_mean", "ln B", "{jobs} used e^{value} bytes of memory lately, as a logarithmic mean"),
)
_PEAK, _MEAN = LASTS.index("peak"), EWS.index("peak_mean")


def compute(context: Context, out: Block) -> None:
    """Fill the peaks of each key [n, keys, 3]."""
    rows = context.rows
    peak = rows["lasts"][..., _PEAK] * _UNIT
    out[..., 0] = peak
    out[..., 1] = peak / context.requests[:, AT["mem_b"], None]
    out[..., 2] = rows["ews"][..., _MEAN]


_UNIT = np.float64(PEAK_UNIT_B)  # not a Python number: the product must not be a float16
GROUP = Group(FEATURES, compute)
