"""`sbatch --test-only` hears what the job itself would hear: no chance is drawn, and nobody is charged for it."""

from typing import Final

from gpuwaste.policy.case import Case

ORDER: Final = 550


def apply(case: Case) -> None:
    """Draw no chance."""
    if case.facts.test_only:
        case.draws = False
        case.step("test_only", "the job is only tried: nothing is left to chance, counted or recorded")
