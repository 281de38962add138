"""The peak memory of earlier jobs of each key, where accounting knows it, beside what is asked for."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group
from gpuwaste.predict.recurrences import PEAK_UNIT_B
from gpuwaste.predict.rows import LASTS, PEAKS

FEATURES = (
    Feature("peak_1", "B", "the last of the {jobs} used {value} of memory at most"),
    Feature("peak_2", "B", "the second last of the {jobs} used {value} of memory at most"),
    Feature("peak_3", "B", "the third last of the {jobs} used {value} of memory at most"),
    Feature("peak_1_of_asked", "", "the last of the {jobs} used {value} of the memory asked for now"),
    Feature("peak_2_of_asked", "", "the second last of the {jobs} used {value} of the memory asked for now"),
    Feature("peak_3_of_asked", "", "the third last of the {jobs} used {value} of the memory asked for now"),
)
_FIRST = LASTS.index("peak_1")
_UNIT = np.float64(PEAK_UNIT_B)  # not a Python number: the product must not be a float16


def compute(context: Context, out: Block) -> None:
    """Fill the peaks of each key [n, keys, 6]."""
    np.multiply(context.rows["lasts"][..., _FIRST:], _UNIT, out=out[..., :PEAKS])
    np.divide(out[..., :PEAKS], context.requests[:, AT["mem_b"], None, None], out=out[..., PEAKS:])


GROUP = Group(FEATURES, compute)
