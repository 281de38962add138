"""What of each key is in the system at the submission, and how long ago things happened."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.feature_context import PAIR_AT, Context
from gpuwaste.advice.predict.feature_group import Block, Feature, Group, Step, copied, like
from gpuwaste.jobs.history.packed_rows import BURSTS, COUNTS, INSTANTS, SENT

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
_NEVER = np.float64(0.0)  # the instant of an event that has not happened yet
_FIRST = COUNTS.index("running")
_COUNTED = len(COUNTS) - _FIRST
_BURSTS = _COUNTED + len(BURSTS)
_SENT = _BURSTS + len(SENT)


def steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the queue of each key [n, keys, 9]."""
    rows = context.rows
    sent, happened = like(rows["sent"]), rows["instants"][..., : len(INSTANTS)]
    instants, never = np.empty(happened.shape), np.empty(happened.shape, dtype=bool)
    yield copied(out[..., :_COUNTED], rows["counts"][..., _FIRST:])
    yield copied(out[..., _COUNTED:_BURSTS], rows["bursts"])
    yield copied(sent, rows["sent"])
    yield partial(np.divide, sent, context.requests[:, None, PAIR_AT:], out[..., _BURSTS:_SENT])
    yield copied(instants, happened)
    yield partial(np.equal, instants, _NEVER, never)
    yield partial(np.putmask, instants, never, np.nan)
    yield partial(np.subtract, context.submit[:, None, None], instants, out[..., _SENT:], casting="unsafe")


GROUP = Group("queue", "", FEATURES, steps)
