"""The action is never stronger than the policy's mode: in shadow nothing is visible, in annotate nothing at sbatch."""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.jobs.verdict import Action, Mode

ORDER: Final = 500
MOST: Final[dict[Mode, Action]] = {
    "off": "pass",
    "shadow": "pass",
    "annotate": "annotate",
    "warn": "warn",
    "reject": "reject",
}


def apply(case: PolicyCase) -> None:
    """Lower the action to the mode."""
    mode, before = case.policy.mode, case.action
    case.hold(MOST[mode], mode)
    if case.action != before:
        case.step("mode", f"the policy's mode is {mode}: {before} becomes {case.action}")
