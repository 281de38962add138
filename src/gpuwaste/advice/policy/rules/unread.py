"""A submission whose texts exceed the CPU limit of one request is accepted without being read.

Ordinary scripts never reach the limit; the verdict's row shows who submits others.
"""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase

ORDER: Final = 90


def apply(case: PolicyCase) -> None:
    """End the case."""
    if case.facts.unread:
        case.end("not read")
        case.step("unread", "reading the job's script takes too much CPU: job accepted without advice")
