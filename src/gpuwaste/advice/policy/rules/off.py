"""A policy whose mode is off gives no advice, and the advisor does not score the submission."""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase

ORDER: Final = 100


def apply(case: PolicyCase) -> None:
    """End the case."""
    if case.policy.mode == "off":
        case.end("off")
        case.step("off", "the policy is off: no score and no advice")
