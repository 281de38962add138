"""The catalogue: every kind of action by its name."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from gpuwaste.act.actions import kinds
from gpuwaste.act.actions.action_kind import ActionKind
from gpuwaste.core.registry import ModuleRegistry


@cache
def actions() -> Mapping[str, ActionKind]:
    """Return each kind by its name; a file of `kinds` is found by being there."""
    return {kind.name: kind for kind in (module.KIND for module in ModuleRegistry[Any](kinds, "KIND").values())}
