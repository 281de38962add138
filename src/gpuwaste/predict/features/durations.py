"""How long the earlier jobs of each key ran, beside this request's limit."""

import numpy as np

from gpuwaste.predict.context import AT, LIMIT_AND_CPUS, Context
from gpuwaste.predict.features.base import Block, Feature, Group
from gpuwaste.predict.recurrences import MINUTE_S
from gpuwaste.predict.rows import AMOUNTS, EWS

FEATURES = (
    Feature("run_1", "s", "the last of the {jobs} ran {value}"),
    Feature("run_max", "s", "the longest of the last 8 {jobs} ran {value}"),
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
_SHARE = 2 + _LAST + 2
_RATES = _SHARE + 3
_MEAN = EWS.index("run_mean")


def compute(context: Context, out: Block) -> None:
    """Fill the durations of each key [n, keys, 12]; the ring's times are minutes that a float16 holds."""
    rows, asked = context.rows, context.requests
    amounts = np.multiply(rows["amounts"], _SECONDS)
    runs = np.empty((*rows.shape, _LAST + 2))
    ring = amounts[..., _RUN]
    runs[..., :_LAST] = ring[..., :_LAST]
    np.fmax.reduce(ring, axis=-1, out=runs[..., _LAST])
    np.fmin.reduce(ring, axis=-1, out=runs[..., _LAST + 1])
    out[..., :2] = runs[..., : _LAST + 1 : _LAST]
    out[..., 2:_SHARE] = runs / asked[:, AT["limit_s"], None, None]
    out[..., _SHARE] = ring[..., 0] / amounts[..., 0, _LIMIT]
    out[..., _SHARE + 1 : _RATES] = amounts[..., 0, _LIMIT:] / asked[:, None, LIMIT_AND_CPUS]
    out[..., _RATES:] = rows["ews"][..., _MEAN : _MEAN + 2]


_SECONDS = np.array([MINUTE_S, MINUTE_S, 1.0])
GROUP = Group(FEATURES, compute)
