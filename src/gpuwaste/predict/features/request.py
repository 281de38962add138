"""The request itself: amounts, limit, time of day, facts of the name. Partition and QOS speak by their history only."""

import numpy as np

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.predict.context import AT, Context
from gpuwaste.predict.features.base import Block, Feature, Group
from gpuwaste.predict.texts import NAME_FACTS

_COPIED = ("limit_s", "nodes", "cpus", "mem_b", "gpus", "is_array", "interactive", *NAME_FACTS)
_PICK = np.array([AT[name] for name in _COPIED])
_OVER = np.array([AT[name] for name in ("mem_b", "cpus", "cpus", "mem_b", "gpus")])
_UNDER = np.array([AT[name] for name in ("cpus", "nodes", "gpus", "gpus", "nodes")])
_CYCLES = np.array([DAY_S, 7 * DAY_S], dtype=np.float64)
_UNITS = np.array([HOUR_S, DAY_S], dtype=np.float64)
_EPOCH_WEEKDAY = 3 * DAY_S  # 1 January 1970 was a Thursday: a week that starts on Monday
_ROUND = np.array([HOUR_S, DAY_S], dtype=np.float64)

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
    Feature("name_test", "", "a job name that speaks of a test ({value}: 1 yes, 0 no)"),
    Feature("mem_per_cpu", "B", "{value} of memory for each CPU"),
    Feature("cpus_per_node", "", "{value} CPUs on each node"),
    Feature("cpus_per_gpu", "", "{value} CPUs for each GPU"),
    Feature("mem_per_gpu", "B", "{value} of memory for each GPU"),
    Feature("gpus_per_node", "", "{value} GPUs on each node"),
    Feature("hour", "h", "submitted at {value} o'clock UTC"),
    Feature("weekday", "", "submitted on day {value} of the week (0 is Monday)"),
    Feature("limit_past_hour", "s", "a time limit that is {value} over whole hours"),
    Feature("limit_past_day", "s", "a time limit that is {value} over whole days"),
)


def compute(context: Context) -> Block:
    """Return the request's own columns [n, 19]."""
    asked = context.requests
    copied = len(_COPIED)
    out = np.empty((len(asked), len(FEATURES)))
    out[:, :copied] = asked.take(_PICK, axis=1)
    np.divide(asked.take(_OVER, axis=1), asked.take(_UNDER, axis=1), out=out[:, copied : copied + 5])
    now = asked[:, AT["submit"], None] + _SHIFTS
    np.floor_divide(np.remainder(now, _CYCLES), _UNITS, out=out[:, copied + 5 : copied + 7])
    np.remainder(asked[:, AT["limit_s"], None], _ROUND, out=out[:, copied + 7 :])
    return out


_SHIFTS = np.array([0, _EPOCH_WEEKDAY], dtype=np.float64)
GROUP = Group(FEATURES, compute)
