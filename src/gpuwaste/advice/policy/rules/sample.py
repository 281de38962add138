"""A share of the rejects is accepted at random and marked: only these jobs show how often a reject is right.

Their users see nothing, because a warning could change what they do.
"""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.core.units import say_percent

ORDER: Final = 560


def apply(case: PolicyCase) -> None:
    """Accept a reject with the policy's probability."""
    ratio = case.policy.sample.pass_ratio.value
    if case.action == "reject" and ratio and case.draws and case.chance() < ratio:
        case.sampled = True
        case.hold("pass", "random")
        case.step("sample", f"one of the {say_percent(ratio)} of rejects that are accepted at random")
