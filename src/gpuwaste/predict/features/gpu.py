"""What the ledger said of the last GPU job of each key."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group, by_key, joined
from gpuwaste.predict.rows import USES

FEATURES = by_key(
    Feature("gpu_used", "", "the GPUs of the last of the {jobs} were used {value} of the time"),
    Feature("gpu_active", "", "the last of the {jobs} worked on {value} GPUs"),
    Feature("gpu_active_of_asked", "", "the last of the {jobs} worked on {value} of the GPUs it had"),
    Feature("gpus_over_active", "", "{value} times the GPUs that the last of the {jobs} worked on"),
)
_N = len(FEATURES) // 5


def compute(context: Context) -> Block:
    """Return the last GPU use of each key [n, keys * 4]."""
    rows = context.rows
    uses = rows["uses"].astype(np.float64)
    active = uses[..., USES.index("active")]
    out = np.empty((*rows.shape, _N))
    out[..., :2] = uses[..., :2]
    np.divide(active, uses[..., USES.index("asked")], out=out[..., 2])
    np.divide(context.requests[:, AT["gpus"], None], active, out=out[..., 3])
    return joined(out)


GROUP = Group(FEATURES, compute)
