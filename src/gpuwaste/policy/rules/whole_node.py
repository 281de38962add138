"""No advice on GPUs where whole nodes are given: fewer GPUs asked for would free none."""

from typing import Final

from gpuwaste.policy.case import Case
from gpuwaste.policy.declarations import GPUS

ORDER: Final = 210


def apply(case: Case) -> None:
    """Drop the target gpus in a partition, or for a request, that takes whole nodes."""
    if case.facts.request.whole_node and any(trigger.target == GPUS for trigger in case.triggers):
        case.triggers = [trigger for trigger in case.triggers if trigger.target != GPUS]
        case.weigh()
        case.step("whole_node", "the job gets whole nodes: nothing is said of GPUs")
