"""A modification (scontrol update) is never rejected for what the job already is: at most a warning.

A user who lowers a limit, holds or renames his job must be able to; the job itself was judged when it was submitted.
"""

from typing import Final

from gpuwaste.policy.case import Case

ORDER: Final = 230


def apply(case: Case) -> None:
    """Lower rejects to warnings."""
    if case.facts.op == "modify" and case.action == "reject":
        for trigger in case.triggers:
            trigger.action = "warn"
        case.weigh()
        case.step("modify", "a job that waits or runs is modified: at most a warning")
