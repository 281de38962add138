"""The rules, a file each with ORDER and `apply(case)`. Every file in this directory is loaded.

ORDER is the rule's position: below JUDGED a rule decides `would_be`, from there on the `action`, which never becomes
stronger again. Two rules never have the same position.
"""

from collections.abc import Callable
from functools import cache
from typing import Final, Protocol

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.core.registry import ModuleRegistry

JUDGED: Final = 500
Apply = Callable[[PolicyCase], None]


class RuleModule(Protocol):
    """A file of this package."""

    ORDER: int

    def apply(self, case: PolicyCase) -> None:
        """Change the case's decision."""
        ...


@cache
def rules() -> dict[str, RuleModule]:
    """Return each rule's module by its name, in their order."""
    return ModuleRegistry[RuleModule](__name__, "ORDER", "apply").ordered_by("ORDER")


@cache
def _applied() -> tuple[Apply, ...]:
    return tuple(module.apply for module in rules().values())


def judge(case: PolicyCase) -> None:
    """Apply every rule in its order, until one ends the case."""
    for apply in _applied():
        apply(case)
        if case.done:
            return
