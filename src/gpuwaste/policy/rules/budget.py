"""A user gets so many rejects a day; above that he is warned instead. An array is submitted once and counts once."""

from typing import Final

from gpuwaste.policy.case import Case

ORDER: Final = 540


def apply(case: Case) -> None:
    """Lower a reject to a warning where the day's budget is spent."""
    most = case.policy.budget.rejects_per_user_per_day
    if case.action == "reject" and case.spending.spent("reject", case.facts.request.user) >= most:
        case.hold("warn", "budget")
        case.step("budget", f"{most} rejects of this user today are the most: he is warned")
