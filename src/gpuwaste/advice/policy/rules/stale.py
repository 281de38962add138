"""An advisor whose job history is too old gives no advice: it may be outdated."""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase

ORDER: Final = 520


def apply(case: PolicyCase) -> None:
    """Lower the action to pass."""
    if case.facts.stale and case.action != "pass":
        case.hold("pass", "stale")
        case.step("stale", "the job history is too old: no advice")
