"""The request itself: amounts, limit, time of day, facts of the name. Partition and QOS count only by their history."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.context import OVER_AT, PAIR_AT, SCRIPT_AT, UNDER_AT, Context
from gpuwaste.advice.predict.features.base import Block, Feature, Group, Step, copied

FEATURES = (
    Feature("limit", "s", "a time limit of {value}"),
    Feature("nodes", "", "{value} nodes"),
    Feature("cpus", "", "{value} CPUs"),
    Feature("mem", "B", "{value} of memory"),
    Feature("gpus", "", "{value} GPUs"),
    Feature("is_array", "", "an array job ({value}: 1 yes, 0 no)"),
    Feature("interactive", "", "an interactive job ({value}: 1 yes, 0 no)"),
    Feature("name_length", "", "a job name of {value} characters"),
    Feature("name_digits", "", "a job name with {value} of its characters digits"),
    Feature("name_test", "", "a job name that suggests a test ({value}: 1 yes, 0 no)"),
    Feature("mem_per_cpu", "B", "{value} of memory for each CPU"),
    Feature("cpus_per_node", "", "{value} CPUs on each node"),
    Feature("cpus_per_gpu", "", "{value} CPUs for each GPU"),
    Feature("mem_per_gpu", "B", "{value} of memory for each GPU"),
    Feature("gpus_per_node", "", "{value} GPUs on each node"),
    Feature("hour", "h", "submitted {value} after midnight UTC"),
    Feature("weekday", "d", "submitted {value} after the start of Monday UTC"),
    Feature("limit_past_hour", "s", "a time limit that is {value} over whole hours"),
    Feature("limit_past_day", "s", "a time limit that is {value} over whole days"),
)


def steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the request's own columns [n, 19]."""
    asked = context.requests
    yield copied(out[:, :SCRIPT_AT], asked[:, :SCRIPT_AT])
    yield partial(np.divide, asked[:, OVER_AT:UNDER_AT], asked[:, UNDER_AT:PAIR_AT], out[:, SCRIPT_AT:])


GROUP = Group(FEATURES, steps, per_key=False, history=False)
