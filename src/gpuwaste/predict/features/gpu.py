"""What the ledger said of the last judged GPU job of each key."""

import numpy as np

from gpuwaste.history.rows import LASTS
from gpuwaste.predict.context import Context
from gpuwaste.predict.features.base import Block, Feature, Group

FEATURES = (
    Feature("gpu_used", "", "the GPUs of the last of the {jobs} were used {value} of the time"),
    Feature("gpu_active", "", "the last of the {jobs} worked on {value} GPUs"),
    Feature("gpu_active_share", "", "the last of the {jobs} worked on {value} of the GPUs it had"),
)
_ACTIVE, _ASKED = LASTS.index("active"), LASTS.index("asked")
_COPIED = _ACTIVE + 1


def compute(context: Context, out: Block) -> None:
    """Fill the last GPU use of each key [n, keys, 3]."""
    lasts = context.rows["lasts"][..., : _ASKED + 1].astype(np.float32)
    out[..., :_COPIED] = lasts[..., :_COPIED]
    np.divide(lasts[..., _ACTIVE], lasts[..., _ASKED], out=out[..., _COPIED])


GROUP = Group(FEATURES, compute)
