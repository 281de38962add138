"""How long the earlier jobs of each key ran, beside this request's limit."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.context import AT, PAIR_AT, Context
from gpuwaste.advice.predict.features.base import Block, Feature, Group, Step, copied, like
from gpuwaste.core.units import MINUTE_S
from gpuwaste.jobs.history.packed_rows import AMOUNTS, EWS

FEATURES = (
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
_LAST = 3
_RUN, _LIMIT = AMOUNTS.index("run"), AMOUNTS.index("limit")
_RUNS = _LAST + 2
_SHARE = 2 * _RUNS
_RATES = _SHARE + 3
_MEAN = EWS.index("run_mean")
_MINUTE = np.float32(MINUTE_S)


def steps(context: Context, out: Block) -> Iterator[Step]:
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
    yield partial(np.divide, newest[..., _LIMIT:], asked[:, None, PAIR_AT:], out[..., _SHARE + 1 : _RATES])
    yield copied(out[..., _RATES:], rows["ews"][..., _MEAN:])


GROUP = Group(FEATURES, steps)
