"""How long the earlier jobs of each key ran, beside this request's limit."""

import numpy as np

from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group, by_key, joined
from gpuwaste.predict.recurrences import MINUTE_S
from gpuwaste.predict.rows import EWS

FEATURES = by_key(
    Feature("run_1", "s", "the last of the {jobs} ran {value}"),
    Feature("run_2", "s", "the second last of the {jobs} ran {value}"),
    Feature("run_3", "s", "the third last of the {jobs} ran {value}"),
    Feature("run_max_8", "s", "the longest of the last 8 {jobs} ran {value}"),
    Feature("run_min_8", "s", "the shortest of the last 8 {jobs} ran {value}"),
    Feature("run_1_of_limit", "", "the last of the {jobs} ran {value} of this limit"),
    Feature("run_max_of_limit", "", "the longest of the last 8 {jobs} ran {value} of this limit"),
    Feature("share_1", "", "the last of the {jobs} used {value} of its own limit"),
    Feature("limit_over_last", "", "a limit {value} times that of the last of the {jobs}"),
    Feature("cpus_over_last", "", "{value} times the CPUs of the last of the {jobs}"),
    Feature("run_mean", "ln s", "{jobs} ran e^{value} seconds lately, as a logarithmic mean"),
    Feature("run_var", "", "the run times of {jobs} have a logarithmic variance of {value}"),
)
_N = len(FEATURES) // 5
_MEAN = EWS.index("run_mean")


def compute(context: Context) -> Block:
    """Return the durations of each key [n, keys * 12]."""
    rows, asked = context.rows, context.requests
    out = np.empty((*rows.shape, _N))
    run, limit = context.ring("run"), context.ring("limit")
    out[..., :3] = run[..., :3]
    np.fmax.reduce(run, axis=2, out=out[..., 3])
    np.fmin.reduce(run, axis=2, out=out[..., 4])
    out[..., :5] *= MINUTE_S
    mine = asked[:, AT["limit_s"], None]
    out[..., 5] = out[..., 0] / mine
    out[..., 6] = out[..., 3] / mine
    out[..., 7] = run[..., 0] / limit[..., 0]
    out[..., 8] = mine / (limit[..., 0] * MINUTE_S)
    out[..., 9] = asked[:, AT["cpus"], None] / context.ring("cpus")[..., 0]
    out[..., 10:12] = rows["ews"][..., _MEAN : _MEAN + 2]
    return joined(out)


GROUP = Group(FEATURES, compute)
