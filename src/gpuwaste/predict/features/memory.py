"""The peak memory of earlier jobs of each key, where accounting knows it, beside what is asked for."""

import numpy as np

from gpuwaste.history.recurrences import PEAK_UNIT_B
from gpuwaste.history.rows import LASTS
from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group

FEATURES = (
    Feature("peak_1", "B", "the last of the {jobs} used {value} of memory at most"),
    Feature("peak_max", "B", "the largest of the last 3 {jobs} used {value} of memory at most"),
    Feature("peak_1_of_asked", "", "the last of the {jobs} used {value} of the memory asked for now"),
    Feature("peak_max_of_asked", "", "the largest of the last 3 {jobs} used {value} of the memory asked for now"),
)
_FIRST = LASTS.index("peak_1")


def compute(context: Context, out: Block) -> None:
    """Fill the peaks of each key [n, keys, 4]."""
    peaks, bytes_ = context.rows["lasts"][..., _FIRST:].astype(np.float32) * PEAK_UNIT_B, out[..., :2]
    bytes_[..., 0] = peaks[..., 0]
    np.fmax.reduce(peaks, axis=-1, out=bytes_[..., 1])
    np.divide(bytes_, context.requests[:, AT["mem_b"], None, None], out=out[..., 2:])


GROUP = Group(FEATURES, compute)
