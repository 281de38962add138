"""How the earlier jobs of each key ended, and how long they ran compared with the limit of this request."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.feature_context import AT, PAIR_AT, Context
from gpuwaste.advice.predict.feature_group import Block, Feature, Group, Step, copied, like
from gpuwaste.core.units import MINUTE_S
from gpuwaste.jobs.history.packed_rows import AMOUNTS, COUNTS, EWS, RECENT
from gpuwaste.jobs.history.recurrences import FAILED_OF

OUTCOME_FEATURES = (
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
_OUTCOME_RATES = _LAST + len(RECENT)
_COUNTED = _OUTCOME_RATES + 2
_FIRST, _UPTO = COUNTS.index("cancelled"), COUNTS.index("ended") + 1
_ALL = _COUNTED + _UPTO - _FIRST
DURATION_FEATURES = (
    Feature("run_1", "s", "the last of the {jobs} ran {value}"),
    Feature("run_2", "s", "the second last of the {jobs} ran {value}"),
    Feature("run_3", "s", "the third last of the {jobs} ran {value}"),
    Feature("run_max", "s", "the longest of the last 8 {jobs} ran {value}"),
    Feature("run_min", "s", "the shortest of the last 8 {jobs} ran {value}"),
    Feature("run_1_of_limit", "", "the last of the {jobs} ran {value} of this limit"),
    Feature("run_2_of_limit", "", "the second last of the {jobs} ran {value} of this limit"),
    Feature("run_3_of_limit", "", "the third last of the {jobs} ran {value} of this limit"),
    Feature("run_max_of_limit", "", "the longest of the last 8 {jobs} ran {value} of this limit"),
    Feature("run_min_of_limit", "", "the shortest of the last 8 {jobs} ran {value} of this limit"),
    Feature("share_1", "", "the last of the {jobs} ran {value} of its own limit"),
    Feature("last_limit", "", "the last of the {jobs} had {value} of this limit"),
    Feature("last_cpus", "", "the last of the {jobs} had {value} of these CPUs"),
    Feature("run_mean", "ln s", "{jobs} ran e^{value} seconds lately, as a logarithmic mean"),
    Feature("run_var", "", "the run times of {jobs} have a logarithmic variance of {value}"),
)
_RUN, _LIMIT = AMOUNTS.index("run"), AMOUNTS.index("limit")
_RUNS = _LAST + 2
_SHARE = 2 * _RUNS
_RUN_RATES = _SHARE + 3
_MEAN = EWS.index("run_mean")
_MINUTE = np.float32(MINUTE_S)


def outcome_steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the outcomes of each key [n, keys, 12]."""
    rows, counts = context.rows, context.rows["counts"]
    judged = like(counts[..., :2])
    failed, completed, share = judged[..., 0], judged[..., 1], out[..., _ALL]
    # FAILED_OF covers every outcome; if numpy has to check that, it writes into a buffer of its own first.
    yield partial(_FAILED.take, rows["outcomes"][..., :_LAST], None, out[..., :_LAST], "clip")
    yield copied(out[..., _LAST:_OUTCOME_RATES], rows["recent"])
    yield copied(out[..., _OUTCOME_RATES:_COUNTED], rows["ews"][..., :2])
    yield copied(out[..., _COUNTED:_ALL], counts[..., _FIRST:_UPTO])
    yield copied(judged, counts[..., :2])
    yield partial(np.add, failed, completed, share)
    yield partial(np.divide, failed, share, share)


OUTCOMES = Group("outcomes", "How the earlier jobs of each key ended.", OUTCOME_FEATURES, outcome_steps)


def duration_steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the durations of each key [n, keys, 15]; a ring's minutes times 60 fit a float32 without rounding."""
    rows, asked = context.rows, context.requests
    amounts, seconds = like(rows["amounts"]), out[..., :_RUNS]
    runs, newest = like(amounts[..., _RUN]), amounts[..., 0, :]
    yield copied(amounts, rows["amounts"])
    yield partial(np.multiply, amounts[..., _RUN], _MINUTE, runs)
    yield copied(seconds[..., :_LAST], runs[..., :_LAST])
    yield partial(np.fmax.reduce, runs, -1, None, out[..., _LAST])
    yield partial(np.fmin.reduce, runs, -1, None, out[..., _LAST + 1])
    yield partial(np.divide, seconds, asked[:, AT["limit_s"], None, None], out[..., _RUNS:_SHARE])
    yield partial(np.divide, newest[..., _RUN], newest[..., _LIMIT], out[..., _SHARE])
    yield partial(np.divide, newest[..., _LIMIT:], asked[:, None, PAIR_AT:], out[..., _SHARE + 1 : _RUN_RATES])
    yield copied(out[..., _RUN_RATES:], rows["ews"][..., _MEAN:])


DURATIONS = Group(
    "durations",
    "How long the earlier jobs of each key ran, compared with this request's limit.",
    DURATION_FEATURES,
    duration_steps,
)
