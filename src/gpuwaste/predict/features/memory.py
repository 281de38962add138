"""The peak memory of earlier jobs of each key, where accounting knows it, beside what is asked for."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group
from gpuwaste.predict.recurrences import PEAK_UNIT_B
from gpuwaste.predict.rows import LASTS

FEATURES = (
    Feature("peak_1", "B", "the last of the {jobs} used {value} of memory at most"),
    Feature("peak_max", "B", "the largest of the last 3 {jobs} used {value} of memory at most"),
    Feature("peak_1_of_asked", "", "the last of the {jobs} used {value} of the memory asked for now"),
    Feature("peak_max_of_asked", "", "the largest of the last 3 {jobs} used {value} of the memory asked for now"),
)
_FIRST = LASTS.index("peak_1")
_UNIT = np.float64(PEAK_UNIT_B)  # not a Python number: the product must not be a float16


def compute(context: Context, out: Block) -> None:
    """Fill the peaks of each key [n, keys, 4]."""
    peaks = context.rows["lasts"][..., _FIRST:]
    np.multiply(peaks[..., 0], _UNIT, out=out[..., 0])
    np.multiply(np.fmax.reduce(peaks, axis=-1), _UNIT, out=out[..., 1])
    np.divide(out[..., :2], context.requests[:, AT["mem_b"], None, None], out=out[..., 2:])


GROUP = Group(FEATURES, compute)
