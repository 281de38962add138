"""What of each key is in the system at the submission, and how long ago things happened."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group, by_key, joined
from gpuwaste.predict.recurrences import BURST_S
from gpuwaste.predict.rows import COUNTS

FEATURES = by_key(
    Feature("queued", "", "{value} {jobs} are waiting"),
    Feature("running", "", "{value} {jobs} are running"),
    Feature("since_submit", "s", "the last submission of {jobs} was {value} ago"),
    Feature("since_end", "s", "the last end of {jobs} was {value} ago"),
    Feature("since_end_8", "s", "the last 8 {jobs} ended within {value}"),
    Feature("burst", "", "{value} {jobs} submitted one right after the other before this one"),
)
_N = len(FEATURES) // 5
_C = {name: place for place, name in enumerate(COUNTS)}


def compute(context: Context) -> Block:
    """Return the queue of each key [n, keys * 6]."""
    rows, counts = context.rows, context.counts
    now = context.requests[:, AT["submit"], None]
    out = np.empty((*rows.shape, _N))
    waited = counts[..., _C["started"]] + counts[..., _C["unstarted"]]
    np.subtract(counts[..., _C["submitted"]], waited, out=out[..., 0])
    np.subtract(waited, counts[..., _C["ended"]], out=out[..., 1])
    ends = rows["ends"]
    out[..., 2] = now - counts[..., _C["last_submit"]]
    out[..., 3] = now - ends[..., 0]
    out[..., 4] = now - ends[..., -1]
    out[..., 2][counts[..., _C["submitted"]] == 0] = np.nan
    out[..., 3][ends[..., 0] == 0] = np.nan
    out[..., 4][ends[..., -1] == 0] = np.nan
    out[..., 5] = rows["burst"] * (out[..., 2] <= BURST_S)
    return joined(out)


GROUP = Group(FEATURES, compute)
