"""A policy whose warnings and rejects are wrong too often falls back to shadow mode.

The advisor keeps the precision; without it, or with too few verdicts behind it, there is no floor.
"""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.core.units import say_percent

ORDER: Final = 510


def apply(case: PolicyCase) -> None:
    """Lower the action to pass below the floor."""
    floor = case.policy.floor
    if case.action == "pass" or not floor.precision.value:
        return
    known = case.spending.precision(case.policy.name)
    if known is None or known[1] < floor.min_verdicts or known[0] >= floor.precision.value:
        return
    case.hold("pass", "floor")
    case.step(
        "floor",
        f"{say_percent(known[0])} of its last {known[1]} warnings and rejects were right, the floor is "
        f"{floor.precision}: it falls back to shadow mode",
    )
