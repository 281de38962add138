"""A modification (scontrol update) is never rejected for what the job already is: at most a warning.

Users must be able to lower a limit, hold or rename their jobs; the job itself was judged when it was submitted.
"""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase

ORDER: Final = 230


def apply(case: PolicyCase) -> None:
    """Lower rejects to warnings."""
    if case.facts.op == "modify" and case.action == "reject":
        for trigger in case.triggers:
            trigger.action = "warn"
        case.weigh()
        case.step("modify", "modification of a pending or running job: at most a warning")
