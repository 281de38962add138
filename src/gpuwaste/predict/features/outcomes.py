"""How the earlier jobs of each key ended."""

import numpy as np

from gpuwaste.history.recurrences import FAILED_OF
from gpuwaste.history.rows import COUNTS, RECENT
from gpuwaste.predict.context import Context
from gpuwaste.predict.features.base import Block, Feature, Group

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


def compute(context: Context, out: Block) -> None:
    """Fill the outcomes of each key [n, keys, 12]."""
    rows = context.rows
    counts = rows["counts"]
    out[..., :_LAST] = _FAILED.take(rows["outcomes"][..., :_LAST])
    out[..., _LAST:_RATES] = rows["recent"]
    out[..., _RATES:_COUNTED] = rows["ews"][..., :2]
    out[..., _COUNTED:_ALL] = counts[..., _FIRST:_UPTO]
    judged = counts[..., :2].astype(np.float32)
    failed = judged[..., 0]
    np.divide(failed, failed + judged[..., 1], out=out[..., _ALL])


GROUP = Group(FEATURES, compute)
