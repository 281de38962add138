"""What of each key is in the system at the submission, and how long ago things happened."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group
from gpuwaste.predict.rows import COUNTS, INSTANTS

FEATURES = (
    Feature("running", "", "{value} {jobs} are running"),
    Feature("queued", "", "{value} {jobs} are waiting"),
    Feature("burst", "", "{value} {jobs} came no more than a minute after one another before this one"),
    Feature("since_submit", "s", "the last submission of {jobs} was {value} ago"),
    Feature("since_fail", "s", "the last failure of {jobs} was {value} ago"),
    Feature("since_end", "s", "the last end of {jobs} was {value} ago"),
)
_FIRST = COUNTS.index("running")
_COUNTED = len(COUNTS) - _FIRST


def compute(context: Context, out: Block) -> None:
    """Fill the queue of each key [n, keys, 6]."""
    rows = context.rows
    out[..., :_COUNTED] = rows["counts"][..., _FIRST:]
    instants = rows["instants"][..., : len(INSTANTS)]
    ages = context.requests[:, AT["submit"], None, None] - instants
    np.copyto(ages, np.nan, where=instants == 0)
    out[..., _COUNTED:] = ages


GROUP = Group(FEATURES, compute)
