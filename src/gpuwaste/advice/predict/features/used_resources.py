"""What the earlier jobs of each key used: peak memory, where accounting has it, and GPUs, as the ledger judged."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.feature_context import AT, Context
from gpuwaste.advice.predict.feature_group import Block, Feature, Group, Step, copied, like
from gpuwaste.jobs.history.packed_rows import LASTS
from gpuwaste.jobs.history.recurrences import PEAK_UNIT_B

MEMORY_FEATURES = (
    Feature("peak_1", "B", "the last of the {jobs} used {value} of memory at most"),
    Feature("peak_max", "B", "the largest of the last 3 {jobs} used {value} of memory at most"),
    Feature("peak_1_of_asked", "", "the last of the {jobs} used {value} of the memory requested now"),
    Feature("peak_max_of_asked", "", "the largest of the last 3 {jobs} used {value} of the memory requested now"),
)
_PEAK = LASTS.index("peak_1")
_UNIT_B = np.float32(PEAK_UNIT_B)
GPU_FEATURES = (
    Feature("gpu_used", "", "the GPUs of the last of the {jobs} were used {value} of the time"),
    Feature("gpu_active", "", "the last of the {jobs} used {value} GPUs"),
    Feature("gpu_active_share", "", "the last of the {jobs} used {value} of its GPUs"),
)
_ACTIVE, _ASKED = LASTS.index("active"), LASTS.index("asked")
_COPIED = _ACTIVE + 1


def memory_steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the peaks of each key [n, keys, 4]."""
    known, bytes_ = context.rows["lasts"][..., _PEAK:], out[..., :2]
    peaks = like(known)
    yield copied(peaks, known)
    yield partial(np.multiply, peaks, _UNIT_B, peaks)
    yield copied(bytes_[..., 0], peaks[..., 0])
    yield partial(np.fmax.reduce, peaks, -1, None, bytes_[..., 1])
    yield partial(np.divide, bytes_, context.requests[:, AT["mem_b"], None, None], out[..., 2:])


MEMORY = Group(
    "memory",
    "The peak memory of earlier jobs of each key, where accounting has it, and the memory of this request.",
    MEMORY_FEATURES,
    memory_steps,
)


def gpu_steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the last GPU use of each key [n, keys, 3]."""
    known = context.rows["lasts"][..., : _ASKED + 1]
    lasts = like(known)
    yield copied(lasts, known)
    yield copied(out[..., :_COPIED], lasts[..., :_COPIED])
    yield partial(np.divide, lasts[..., _ACTIVE], lasts[..., _ASKED], out[..., _COPIED])


GPU = Group("gpu", "The ledger of the last judged GPU job of each key.", GPU_FEATURES, gpu_steps)
