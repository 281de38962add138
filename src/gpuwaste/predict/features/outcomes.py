"""How the earlier jobs of each key ended."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group, by_key, joined
from gpuwaste.predict.outcome import Outcome
from gpuwaste.predict.recurrences import FAILED_OF, MINUTE_S, NEAR_LIMIT
from gpuwaste.predict.rows import COUNTS, EWS

_LAST = 3
# For each class of outcome: counts as failed, as completed, as cancelled.
_CLASSES = np.zeros((len(Outcome), 3))
_CLASSES[[Outcome.FAILED, Outcome.OUT_OF_MEMORY], 0] = 1.0
_CLASSES[Outcome.COMPLETED, 1] = 1.0
_CLASSES[Outcome.CANCELLED, 2] = 1.0
_C = {name: place for place, name in enumerate(COUNTS)}

FEATURES = by_key(
    Feature("fail_1", "", "the last of the {jobs} failed ({value}: 1 yes, 0 no)"),
    Feature("fail_2", "", "the second last of the {jobs} failed ({value}: 1 yes, 0 no)"),
    Feature("fail_3", "", "the third last of the {jobs} failed ({value}: 1 yes, 0 no)"),
    Feature("fails_8", "", "{value} of the last 8 {jobs} failed"),
    Feature("fail_rate_8", "", "a share of {value} of the last 8 {jobs} failed"),
    Feature("cancelled_8", "", "{value} of the last 8 {jobs} were cancelled"),
    Feature("at_limit_8", "", "{value} of the last 8 {jobs} ran into their time limit"),
    Feature("same_fail_rate", "", "a share of {value} of the last {jobs} with these CPUs and this limit failed"),
    Feature("same_ended", "", "{value} of the last 8 {jobs} had these CPUs and this limit"),
    Feature("fail_streak", "", "{value} failures in a row among {jobs}"),
    Feature("fail_fast", "", "a recent failure rate of {value} among {jobs}"),
    Feature("fail_slow", "", "a failure rate of {value} among {jobs}"),
    Feature("fail_all", "", "a share of {value} of all {jobs} failed"),
    Feature("ended", "", "{value} {jobs} have ended"),
)
_N = len(FEATURES) // 5


def compute(context: Context) -> Block:
    """Return the outcomes of each key [n, keys * 14]."""
    rows, counts = context.rows, context.counts
    outcomes = rows["outcomes"]
    out = np.empty((*rows.shape, _N))
    out[..., :_LAST] = FAILED_OF.take(outcomes[..., :_LAST])
    classes = _CLASSES.take(outcomes, axis=0)
    sums = np.add.reduce(classes, axis=2)
    run, limit = context.ring("run"), context.ring("limit")
    late = (run >= NEAR_LIMIT * limit) | (run >= limit - 1.0)
    same = _same(context)
    kind = np.add.reduce(classes[..., :2] * same[..., None], axis=2)
    out[..., 3] = sums[..., 0]
    out[..., 4] = sums[..., 0] / (sums[..., 0] + sums[..., 1])
    out[..., 5] = sums[..., 2]
    out[..., 6] = np.add.reduce(late, axis=2)
    out[..., 7] = kind[..., 0] / (kind[..., 0] + kind[..., 1])
    out[..., 8] = np.add.reduce(same, axis=2)
    np.maximum(rows["streak"], 0, out=out[..., 9])
    out[..., 10:12] = rows["ews"][..., : EWS.index("fail_slow") + 1]
    failed = counts[..., _C["failed"]]
    out[..., 12] = failed / (failed + counts[..., _C["completed"]])
    out[..., 13] = counts[..., _C["ended"]]
    return joined(out)


def _same(context: Context) -> Block:
    """Tell which remembered runs had this request's processors and limit, as the ring rounds them."""
    asked = context.requests
    cpus = asked[:, AT["cpus"]].astype(np.float16)[:, None, None]
    limit = (asked[:, AT["limit_s"]] / MINUTE_S).astype(np.float16)[:, None, None]
    return (context.ring("cpus") == cpus) & (context.ring("limit") == limit)


GROUP = Group(FEATURES, compute)
