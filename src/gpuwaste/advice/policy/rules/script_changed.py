"""A job whose batch script has changed since its failures is never rejected: the change may be the fix.

If a change cannot be detected (no script, no failure with a known script), a prediction from earlier failures gives at
most a warning. Other targets, such as GPUs, can still be rejected then.
"""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.advice.policy.policy_file import PROBABILITIES

ORDER: Final = 220


def apply(case: PolicyCase) -> None:
    """Lower rejects to warnings."""
    script, lowered = case.facts.script, False
    for trigger in case.triggers if script != "same" else ():
        if trigger.action == "reject" and (script == "changed" or trigger.target in PROBABILITIES):
            trigger.action, lowered = "warn", True
    if lowered:
        case.weigh()
        what = "has changed since jobs like this failed" if script == "changed" else "cannot be compared"
        case.step("script_changed", f"the batch script {what}: at most a warning")
