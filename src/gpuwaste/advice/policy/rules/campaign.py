"""A user whom a campaign holds back gets nothing of the policy: no line, no reject, no time limit that it sets.

The verdict is computed and recorded like any other, so neither the time of the answer nor the job shows the difference.
"""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase

ORDER: Final = 505  # before what spends the user's budgets or draws a sample
HELD: Final = "campaign"


def apply(case: PolicyCase) -> None:
    """Lower the action to pass."""
    if case.facts.campaign:
        case.campaign = case.facts.campaign
        case.hold("pass", HELD)
        case.step("campaign", f"campaign {case.campaign} holds this policy back from the user")
