"""An advisor that has not heard of jobs for a while says nothing: what it knows may be long over."""

from typing import Final

from gpuwaste.policy.case import Case

ORDER: Final = 520


def apply(case: Case) -> None:
    """Say nothing."""
    if case.facts.stale and case.action != "pass":
        case.hold("pass", "stale")
        case.step("stale", "the history is too old: nothing is said")
