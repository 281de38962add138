"""The catalogue: every kind of action by its name."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from gpuwaste.act.actions import kinds
from gpuwaste.act.actions.action_kind import ActionKind


@cache
def actions() -> Mapping[str, ActionKind]:
    """Return each kind by its name; a file of `kinds` is found by being there."""
    names = sorted(module.name for module in pkgutil.iter_modules(kinds.__path__) if module.name[0] != "_")
    found = (importlib.import_module(f"{kinds.__name__}.{name}").KIND for name in names)
    return {kind.name: kind for kind in found}
