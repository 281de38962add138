"""The peak memory of earlier jobs of each key, where accounting knows it, beside what is asked for."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.context import AT, Context
from gpuwaste.advice.predict.features.base import Block, Feature, Group, Step, copied, like
from gpuwaste.jobs.history.packed_rows import LASTS
from gpuwaste.jobs.history.recurrences import PEAK_UNIT_B

FEATURES = (
    Feature("peak_1", "B", "the last of the {jobs} used {value} of memory at most"),
    Feature("peak_max", "B", "the largest of the last 3 {jobs} used {value} of memory at most"),
    Feature("peak_1_of_asked", "", "the last of the {jobs} used {value} of the memory asked for now"),
    Feature("peak_max_of_asked", "", "the largest of the last 3 {jobs} used {value} of the memory asked for now"),
)
_FIRST = LASTS.index("peak_1")
_UNIT_B = np.float32(PEAK_UNIT_B)


def steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the peaks of each key [n, keys, 4]."""
    known, bytes_ = context.rows["lasts"][..., _FIRST:], out[..., :2]
    peaks = like(known)
    yield copied(peaks, known)
    yield partial(np.multiply, peaks, _UNIT_B, peaks)
    yield copied(bytes_[..., 0], peaks[..., 0])
    yield partial(np.fmax.reduce, peaks, -1, None, bytes_[..., 1])
    yield partial(np.divide, bytes_, context.requests[:, AT["mem_b"], None, None], out[..., 2:])


GROUP = Group(FEATURES, steps)
