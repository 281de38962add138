"""A policy whose mode is off says nothing, and the advisor does not score what it judges."""

from typing import Final

from gpuwaste.policy.case import Case

ORDER: Final = 100


def apply(case: Case) -> None:
    """End the case."""
    if case.policy.mode == "off":
        case.end("off")
        case.step("off", "the policy is off: nothing is scored and nothing is said")
