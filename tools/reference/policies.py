"""policies.md, from the declarations of a policy's tables and from the rules' docstrings, in their order."""

import inspect
from dataclasses import MISSING, fields
from datetime import date
from typing import Any, Final

from gpuwaste.advice.policy.policy_file import (
    FIRST_DAY,
    LAST_DAY,
    TABLES,
    TARGETS,
    Patterns,
    PolicyExemption,
    Ratio,
    TargetRule,
    Threshold,
    Weekdays,
)
from gpuwaste.advice.policy.policy_loading import BUILT_IN
from gpuwaste.advice.policy.rules import JUDGED, rules
from gpuwaste.core.day_hours import Hours
from tools.reference.markdown import code, document, table

_INTRO: Final = """
A policy is one TOML file in `[advisor] policies_dir` (`/etc/gpuwaste/policies.d`). The files are read in the order of
their names; the first one whose table `[when]` matches decides, and the built-in policy decides if none matches. An
error in a file names the file and the key; a running daemon then keeps the policies that it has loaded. How to write
one: [policies](../how-to/policies.md).
"""
_TARGETS: Final = f"""
`[targets.NAME]`, one table for each of {", ".join(f"`{name}`" for name in TARGETS)}. If two targets lead to the same
action, the user sees the one that comes first in this list. How the values are computed: rule `thresholds` below.
"""
_ORDER: Final = f"""
## The rules, in their order

Each rule is applied once, in the order of its number. Rules below {JUDGED} determine `would_be`, what the thresholds
lead to. Rules from {JUDGED} on determine the `action`, which starts as `would_be` and can only become weaker (reject,
warn, annotate, pass). `held` is the last rule that made it weaker, or the policy's mode.
"""
_BUILT_IN: Final = f"""
## The built-in policy

```toml policy
{BUILT_IN}```
"""


def page() -> str:
    """Return the page: the tables, then the rules."""
    parts = [_INTRO]
    for name, kind in TABLES.items():
        parts += [f"## [{name}]", inspect.cleandoc(str(kind.__doc__)), _keys(kind)]
        if name == "when":
            parts += ["## [targets.NAME]", _TARGETS, _keys(TargetRule)]
    parts.append(_ORDER)
    for name, module in rules().items():
        parts.append(f"### {module.ORDER} {name}\n\n{inspect.cleandoc(str(module.__doc__))}")
    return document("Policies", *parts, _BUILT_IN)


def _keys(kind: type) -> str:
    rows = []
    for key in fields(kind):
        make: Any = key.default_factory
        default = make() if key.default is MISSING else key.default
        shown = "nobody" if kind is PolicyExemption else _shown(default)
        rows.append((code(key.name.removesuffix("_")), shown, key.metadata["text"]))
    return table(("key", "default", "meaning"), rows)


def _shown(value: Any) -> str:
    if isinstance(value, Patterns | Weekdays) or value in {FIRST_DAY, LAST_DAY}:
        return "all"
    if isinstance(value, Threshold):
        return "none"
    if isinstance(value, bool):
        return code(str(value).lower())
    return code(str(value)) if isinstance(value, Ratio | Hours | int | str | date) else ""
