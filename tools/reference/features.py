"""features.md, from the groups of features and the keys of history."""

import inspect
import sys
from typing import Final

from gpuwaste.advice.predict.feature_group import Group
from gpuwaste.advice.predict.features import FEATURE_VERSION, FEATURES, GROUPS
from gpuwaste.jobs.history.history_keys import KEYS
from tools.reference.markdown import code, document, table

_INTRO: Final = """
What a model sees of a job at its submission: {count} numbers, version {version}. A value that is not known is NaN,
never 0 or -1. [What the words mean and how history is kept](../explanation/features.md).

Of history there is a block of features for each key. A feature of a key is named by both: `user_fail_1`.
"""


def keys() -> str:
    """Return the table of keys."""
    rows = [(code(key.name), f"jobs {key.text}", ", ".join(map(code, key.parts))) for key in KEYS]
    return table(("key", "which earlier jobs", "equal in"), rows)


def group_of(group: Group) -> str:
    """Return a group's section."""
    of = "for each key" if group.per_key else "of the user's last jobs" if group.history else "of the request"
    rows = [(code(f"KEY_{f.name}" if group.per_key else f.name), f.unit, f.text) for f in group.features]
    about = group.text or inspect.cleandoc(str(sys.modules[group.steps.__module__].__doc__))
    return f"## {group.name}: {of}\n\n{about}\n\n{table(('feature', 'unit', 'in words'), rows)}"


def page() -> str:
    """Return the page: the keys, then a section for each group."""
    intro = _INTRO.format(count=len(FEATURES), version=FEATURE_VERSION)
    return document("Features", intro, keys(), *(group_of(group) for group in GROUPS))
