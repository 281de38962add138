"""A user gets a limited number of rejects per day, then warnings instead. An array counts once."""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase

ORDER: Final = 540


def apply(case: PolicyCase) -> None:
    """Lower a reject to a warning where the day's budget is spent."""
    most = case.policy.budget.rejects_per_user_per_day
    if case.action == "reject" and case.spending.spent("reject", case.facts.request.user) >= most:
        case.hold("warn", "budget")
        case.step("budget", f"the user has had {most} rejects today: a warning instead")
