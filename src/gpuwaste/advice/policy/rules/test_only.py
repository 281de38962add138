"""`sbatch --test-only` prints what the job itself would get: no random sample, no charge to a budget."""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase

ORDER: Final = 550


def apply(case: PolicyCase) -> None:
    """Skip the random sample."""
    if case.facts.test_only:
        case.draws = False
        case.step("test_only", "--test-only: no random sample, nothing is counted or recorded")
