"""How the earlier jobs of each key ended."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.context import Context
from gpuwaste.advice.predict.features.base import Block, Feature, Group, Step, copied, like
from gpuwaste.jobs.history.packed_rows import COUNTS, RECENT
from gpuwaste.jobs.history.recurrences import FAILED_OF

FEATURES = (
    Feature("fail_1", "", "the last of the {jobs} failed ({value}: 1 yes, 0 no)"),
    Feature("fail_2", "", "the second last of the {jobs} failed ({value}: 1 yes, 0 no)"),
    Feature("fail_3", "", "the third last of the {jobs} failed ({value}: 1 yes, 0 no)"),
    Feature("failed_8", "", "{value} of the last 8 {jobs} failed"),
    Feature("completed_8", "", "{value} of the last 8 {jobs} completed"),
    Feature("late_8", "", "{value} of the last 8 {jobs} reached their time limit"),
    Feature("fail_streak", "", "{value} failures in a row among {jobs} (below 0: runs in a row that completed)"),
    Feature("fail_fast", "", "a recent failure rate of {value} among {jobs}"),
    Feature("fail_slow", "", "a failure rate of {value} among {jobs}"),
    Feature("cancelled", "", "{value} {jobs} were cancelled so far"),
    Feature("ended", "", "{value} {jobs} ended so far"),
    Feature("fail_all", "", "a share of {value} of all {jobs} failed"),
)
_LAST = 3
_FAILED = FAILED_OF.astype(np.float32)
_RATES = _LAST + len(RECENT)
_COUNTED = _RATES + 2
_FIRST, _UPTO = COUNTS.index("cancelled"), COUNTS.index("ended") + 1
_ALL = _COUNTED + _UPTO - _FIRST


def steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the outcomes of each key [n, keys, 12]."""
    rows, counts = context.rows, context.rows["counts"]
    judged = like(counts[..., :2])
    failed, completed, share = judged[..., 0], judged[..., 1], out[..., _ALL]
    # Each outcome is one that FAILED_OF has; where numpy is to check that, it writes into room of its own first.
    yield partial(_FAILED.take, rows["outcomes"][..., :_LAST], None, out[..., :_LAST], "clip")
    yield copied(out[..., _LAST:_RATES], rows["recent"])
    yield copied(out[..., _RATES:_COUNTED], rows["ews"][..., :2])
    yield copied(out[..., _COUNTED:_ALL], counts[..., _FIRST:_UPTO])
    yield copied(judged, counts[..., :2])
    yield partial(np.add, failed, completed, share)
    yield partial(np.divide, failed, share, share)


GROUP = Group(FEATURES, steps)
