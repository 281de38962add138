"""Features of the request itself: amounts, limit, time of day, facts of the name and of the batch script.

Partition and QOS count only by their history.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from gpuwaste.advice.predict.feature_context import OVER_AT, PAIR_AT, SCRIPT_AT, UNDER_AT, Context
from gpuwaste.advice.predict.feature_group import Block, Feature, Group, Step, copied

REQUEST_FEATURES = (
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
SCRIPT_FEATURES = (
    Feature("script_lines", "", "a script of {value} lines"),
    Feature("script_launcher", "", "srun or mpirun in the script ({value}: 1 yes, 0 no)"),
    Feature("script_python", "", "Python in the script ({value}: 1 yes, 0 no)"),
    Feature("script_torchrun", "", "torchrun, accelerate or deepspeed in the script ({value}: 1 yes, 0 no)"),
    Feature("script_processes", "", "{value} processes a node started by the script"),
    Feature("script_environment", "", "a module, conda or virtual environment in the script ({value}: 1 yes, 0 no)"),
    Feature("script_container", "", "a container in the script ({value}: 1 yes, 0 no)"),
    Feature("script_set_e", "", "set -e in the script ({value}: 1 yes, 0 no)"),
    Feature("script_retry", "", "a retry in the script ({value}: 1 yes, 0 no)"),
)


def request_steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the request's own columns [n, 19]."""
    asked = context.requests
    yield copied(out[:, :SCRIPT_AT], asked[:, :SCRIPT_AT])
    yield partial(np.divide, asked[:, OVER_AT:UNDER_AT], asked[:, UNDER_AT:PAIR_AT], out[:, SCRIPT_AT:])


REQUEST = Group(
    "request",
    "The request itself: amounts, limit, time of day, facts of the name. "
    "Partition and QOS count only by their history.",
    REQUEST_FEATURES,
    request_steps,
    per_key=False,
    history=False,
)


def script_steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the script's columns [n, 9]."""
    yield copied(out, context.requests[:, SCRIPT_AT:OVER_AT])


SCRIPT = Group(
    "script",
    "Facts of the batch script, where there is one: what it starts and how careful it is.",
    SCRIPT_FEATURES,
    script_steps,
    per_key=False,
    history=False,
)
