"""No advice about GPUs if whole nodes are allocated: a smaller request would free none."""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.advice.policy.policy_file import GPUS

ORDER: Final = 210


def apply(case: PolicyCase) -> None:
    """Drop the target gpus where the partition or the request takes entire nodes."""
    if case.facts.request.whole_node and any(trigger.target == GPUS for trigger in case.triggers):
        case.triggers = [trigger for trigger in case.triggers if trigger.target != GPUS]
        case.weigh()
        case.step("whole_node", "the job gets entire nodes: no advice about GPUs")
