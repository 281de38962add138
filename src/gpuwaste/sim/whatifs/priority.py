"""Other settings of priority/multifactor: `priority:fairshare=0+age=1000`, by the names of slurm.conf."""

from dataclasses import replace
from typing import Final

from gpuwaste.core.errors import ConfigError, ParseError, UsageError
from gpuwaste.core.text import words_of
from gpuwaste.sim.multifactor import priority_settings
from gpuwaste.sim.whatif import WhatIfCase, WhatIfChange
from gpuwaste.slurm.site.slurm_settings import KNOWN, printed

TITLE: Final = "other settings of priorities"
VALUE: Final = "SETTING=VALUE+..."
NEEDS_CLUSTER: Final = True
_PREFIXES: Final = ("", "priorityweight", "priority")
_SETTINGS: Final = {name.lower(): name for name in KNOWN if name.startswith("Priority")}


def change(case: WhatIfCase, value: str) -> WhatIfChange:
    """Return the same jobs on a cluster with these settings. Raises UsageError."""
    cluster = case.nodes("priority")
    given = dict(_setting(pair) for pair in value.split("+"))
    settings = {name: text for name, text in cluster.settings.items() if name.lower() not in map(str.lower, given)}
    settings |= given
    try:
        if not priority_settings(settings).multifactor:
            raise UsageError(
                "what-if priority: the machine has PriorityType=priority/basic, which has no weights: add "
                "type=priority/multifactor"
            )
    except ConfigError as error:
        raise UsageError(f"what-if priority: {error}") from error
    before = {name.lower(): text for name, text in cluster.settings.items()}
    notes = [
        f"{name} is {text or '(empty)'} instead of {words_of(before.get(name.lower(), 'the default'), 40)}."
        for name, text in given.items()
    ]
    return WhatIfChange(case.trace, case.processors, {}, tuple(notes), cluster=replace(cluster, settings=settings))


def _setting(pair: str) -> tuple[str, str]:
    """Return a setting by its name in slurm.conf, and its value. Raises UsageError."""
    word, given, text = pair.partition("=")
    found = next((_SETTINGS[each + word.lower()] for each in _PREFIXES if each + word.lower() in _SETTINGS), None)
    if found is None or not given:
        raise UsageError(
            f"what-if priority:{words_of(pair, 40)}: expected settings of slurm.conf separated by +, as in "
            f"priority:fairshare=0+age=1000; settings: {', '.join(_SETTINGS.values())}"
        )
    try:
        return printed(found, text[:200])
    except ParseError as error:
        raise UsageError(f"what-if priority: {error}") from error
