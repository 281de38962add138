"""Facts of the batch script, where there is one: what it starts and how careful it is."""

from collections.abc import Iterator

from gpuwaste.advice.predict.context import OVER_AT, SCRIPT_AT, Context
from gpuwaste.advice.predict.features.base import Block, Feature, Group, Step, copied

FEATURES = (
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


def steps(context: Context, out: Block) -> Iterator[Step]:
    """Fill the script's columns [n, 9]."""
    yield copied(out, context.requests[:, SCRIPT_AT:OVER_AT])


GROUP = Group(FEATURES, steps, per_key=False, history=False)
