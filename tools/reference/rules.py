"""rules.md, from the declarations of a rule's keys, of the facts and of the actions."""

import inspect
from dataclasses import MISSING, fields
from typing import Any, Final, get_type_hints

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.rules.expression_reader import MAX_DEPTH, MAX_TEXT
from gpuwaste.act.rules.rule_definition import NEVER, NO_HOURS, Duration, RuleExemption, RuleHead, StepBudget
from gpuwaste.act.rules.rule_facts import SPACES, About, facts_of
from gpuwaste.advice.policy.policy_file import Patterns, Ratio
from tools.reference.markdown import code, document, table

_INTRO: Final = """
A rule is one TOML file in `[hub] rules_dir` (`/etc/gpuwaste/rules.d`); its name is the file's. How to write one:
[rules](../how-to/rules.md).
"""
_DO: Final = """
## [[do]]

A step; several tables are a ladder. `after` is how long the condition must hold before it ("0s" if left out), `action`
its action, and every other key an option of that action, a text in quotes. A text may name facts: `{job.id}`.
"""
_WHERE: Final = f"""
## Conditions

`where` is a [CEL](https://cel.dev) expression of at most {MAX_TEXT} characters and {MAX_DEPTH} nested parentheses:
facts, numbers, texts and lists of these, `&&`, `||`, `!`, `? :`, `== != < <= > >= in`, `+ - * / %`, `has(FACT)`,
`size()`, `int()`, `double()`, and of texts `.startsWith()`, `.endsWith()`, `.contains()`, `.matches()` with an RE2
pattern. There are no macros over lists. As in CEL, an integer and a number with a point can be compared, but not added.
A list with a fact that is not known is not known. A condition over a fact that is not known does not hold, unless
the other facts decide it; `has(FACT)` tells whether it is known.
"""


def page() -> str:
    """Return the page."""
    parts = [_INTRO, "## Keys of the file", _keys(RuleHead), _DO, _actions()]
    for name, kind in (("budget", StepBudget), ("exempt", RuleExemption)):
        parts += [f"## [{name}]", inspect.cleandoc(str(kind.__doc__)), _keys(kind)]
    parts.append(_WHERE)
    spaces: list[tuple[About, str, type]] = [("running", *one) for one in SPACES["running"].items()]
    for about, name, space in [
        *spaces,
        ("node", "node", SPACES["node"]["node"]),
        ("model", "model", SPACES["model"]["model"]),
    ]:
        parts += [f"### {name}", inspect.cleandoc(str(space.__doc__)), _facts(name, space, about)]
    return document("Rules", *parts)


def _facts(space: str, kind: Any, about: About) -> str:
    hints = get_type_hints(kind, include_extras=True)
    rows = []
    for field in fields(kind):
        name = f"{space}.{field.name}"
        rows.append((code(name), facts_of(about)[name], hints[field.name].__metadata__[0].description))
    return table(("fact", "type", "meaning"), rows)


def _actions() -> str:
    rows = []
    for kind in actions().values():
        options = "; ".join(
            f"{code(option.name)}: {option.about}" + ("" if option.default is None else f" (default: {option.default})")
            for option in kind.options
        )
        rows.append((code(kind.name), kind.about, options))
    return table(("action", "what it does", "options"), rows)


def _keys(kind: Any) -> str:
    rows = []
    for field in fields(kind):
        make: Any = field.default_factory
        default = make() if field.default is MISSING else field.default
        rows.append((code(field.name.removesuffix("_")), _shown(default), field.metadata["text"]))
    return table(("key", "default", "meaning"), rows)


def _shown(default: Any) -> str:
    if isinstance(default, Duration):
        return code(f"{default // 60}m" if default % 60 == 0 and default else f"{int(default)}s")
    if default in {NEVER, NO_HOURS, ""} or (isinstance(default, Patterns) and not default):
        return "none"
    if isinstance(default, tuple):
        return code(default[0])
    return code(
        str(default).lower()
        if isinstance(default, bool)
        else str(default.value if isinstance(default, Ratio) else default)
    )
