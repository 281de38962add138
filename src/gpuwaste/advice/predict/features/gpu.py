"""What the ledger said of the last judged GPU job of each key."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.context import Context
from gpuwaste.advice.predict.features.base import Block, Feature, Group, Step, copied, like
from gpuwaste.jobs.history.packed_rows import LASTS

FEATURES = (
    Feature("gpu_used", "", "the GPUs of the last of the {jobs} were used {value} of the time"),
    Feature("gpu_active", "", "the last of the {jobs} worked on {value} GPUs"),
    Feature("gpu_active_share", "", "the last of the {jobs} worked on {value} of the GPUs it had"),
)
_ACTIVE, _ASKED = LASTS.index("active"), LASTS.index("asked")
_COPIED = _ACTIVE + 1


def steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the last GPU use of each key [n, keys, 3]."""
    known = context.rows["lasts"][..., : _ASKED + 1]
    lasts = like(known)
    yield copied(lasts, known)
    yield copied(out[..., :_COPIED], lasts[..., :_COPIED])
    yield partial(np.divide, lasts[..., _ACTIVE], lasts[..., _ASKED], out[..., _COPIED])


GROUP = Group(FEATURES, steps)
