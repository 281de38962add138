"""A user can override a reject with `--comment=gpuwaste:override=REASON`, if the policy allows it.

It is used only if the job would otherwise be rejected, is recorded with its reason, and is limited per day. The job is
then accepted without a message; `gpuwaste job` shows the verdict.
"""

import re
from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.core.text import masked

ORDER: Final = 530
MAX_REASON: Final = 200
_GIVEN: Final = re.compile(r"(?:^|[\s;,])gpuwaste:override=([^;]*)", re.IGNORECASE)


def apply(case: PolicyCase) -> None:
    """Accept the job if the override is valid."""
    if case.action != "reject" or (reason := reason_of(case.facts.request.comment)) is None:
        return
    rule = case.policy.override
    if not rule.allowed:
        case.step("override", "an override was given, but this policy allows none")
    elif not reason:
        case.step("override", "an override without a reason does not count")
    elif case.spending.spent("override", case.facts.request.user) >= rule.per_user_per_day:
        case.overrides_used = True
        case.step("override", f"the user has used all {rule.per_user_per_day} overrides of today")
    else:
        case.override = reason
        case.hold("annotate", "override")
        case.step("override", f"overridden by the user: {reason}")


def reason_of(comment: str) -> str | None:
    """Return the reason of an override in a job's comment, with unsafe characters replaced; None without one."""
    found = _GIVEN.search(comment)
    return None if found is None else masked(found[1])[:MAX_REASON].strip()
