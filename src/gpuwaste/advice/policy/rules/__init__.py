"""The rules, a file each with ORDER and `apply(case)`. A file is found by being here.

ORDER is the rule's position: below JUDGED a rule decides `would_be`, from there on the `action`, which never becomes
stronger again. Two rules never have the same position.
"""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Final

from gpuwaste.advice.policy.case import PolicyCase

JUDGED: Final = 500
Apply = Callable[[PolicyCase], None]


@cache
def rules() -> dict[str, ModuleType]:
    """Return each rule's module by its name, in their order."""
    names = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    found = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return dict(sorted(found.items(), key=lambda item: int(item[1].ORDER)))


@cache
def _applied() -> tuple[Apply, ...]:
    return tuple(module.apply for module in rules().values())


def judge(case: PolicyCase) -> None:
    """Apply every rule in its order, until one ends the case."""
    for apply in _applied():
        apply(case)
        if case.done:
            return
