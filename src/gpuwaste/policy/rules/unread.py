"""A submission whose texts take more CPU than one question may take passes: they were not read.

A job with an ordinary script never comes to this; the audit's row shows who sends others.
"""

from typing import Final

from gpuwaste.policy.case import Case

ORDER: Final = 90


def apply(case: Case) -> None:
    """End the case."""
    if case.facts.unread:
        case.end("not read")
        case.step("unread", "reading the job's script takes too much CPU: not read, the job passes")
