"""A share of the rejects passes at random and is marked: only these jobs can tell how often rejecting is right.

Whoever passes hears nothing, for a warning could change what he does.
"""

from typing import Final

from gpuwaste.policy.case import Case

ORDER: Final = 560


def apply(case: Case) -> None:
    """Let a reject pass with the policy's share."""
    ratio = case.policy.sample.pass_ratio.value
    if case.action == "reject" and ratio and case.draws and case.chance() < ratio:
        case.sampled = True
        case.hold("pass", "random")
        case.step("sample", f"one of the {ratio:.0%} of rejects that pass at random")
