"""What of each key is in the system at the submission, and how long ago things happened."""

import numpy as np

from gpuwaste.history.rows import BURSTS, COUNTS, INSTANTS, SENT
from gpuwaste.predict.context import PAIR_AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group

FEATURES = (
    Feature("running", "", "{value} {jobs} are running"),
    Feature("queued", "", "{value} {jobs} are waiting"),
    Feature("burst", "", "{value} {jobs} came no more than a minute after one another before this one"),
    Feature("unanswered", "", "{value} {jobs} were submitted since one ended"),
    Feature("sent_limit", "", "the last submitted of the {jobs} had {value} of this limit"),
    Feature("sent_cpus", "", "the last submitted of the {jobs} had {value} of these CPUs"),
    Feature("since_submit", "s", "the last submission of {jobs} was {value} ago"),
    Feature("since_fail", "s", "the last failure of {jobs} was {value} ago"),
    Feature("since_end", "s", "the last end of {jobs} was {value} ago"),
)
_NEVER = 0.0  # the instant of what did not happen yet
_FIRST = COUNTS.index("running")
_COUNTED = len(COUNTS) - _FIRST
_BURSTS = _COUNTED + len(BURSTS)
_SENT = _BURSTS + len(SENT)


def compute(context: Context, out: Block) -> None:
    """Fill the queue of each key [n, keys, 9]."""
    rows = context.rows
    out[..., :_COUNTED] = rows["counts"][..., _FIRST:]
    out[..., _COUNTED:_BURSTS] = rows["bursts"]
    np.divide(rows["sent"].astype(np.float32), context.requests[:, None, PAIR_AT:], out=out[..., _BURSTS:_SENT])
    instants = rows["instants"][..., : len(INSTANTS)].astype(np.float64)
    instants[instants == _NEVER] = np.nan
    out[..., _SENT:] = context.submit[:, None, None] - instants


GROUP = Group(FEATURES, compute)
