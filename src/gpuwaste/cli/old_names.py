"""Names of commands that have moved: one line says the new one."""

from collections.abc import Sequence
from typing import Final

MOVED: Final = {
    "top": "now --hours 1",
    "version": "--version",
    "train": "model train",
    "evaluate": "model evaluate",
    "verdicts": "policy verdicts",
    "actions": "rules actions",
    "actions list": "rules actions",
    "actions show": "rules actions ID",
    "actions approve": "rules approve",
    "actions refuse": "rules refuse",
    "actions stop": "rules stop",
    "actions lift": "rules resume",
    "rules test": "rules explain",
    "notify preview": "digest preview",
    "notify list": "digest list",
    "notify replay": "digest replay",
    "notify run": "digest run",
    "estimate calibrate": "model calibrate",
    "estimate train": "model train --times DIR",
    "model challenge": "model trial NAME",
    "model withdraw": "model trial --end",
    "disputes": "appeal",
    "events outlets": "events status",
    "events inlets": "events status",
    "events quarantine": "events status",
}
"""By the old words of a command line: the new ones."""


def new_name(words: Sequence[str]) -> str | None:
    """Return what the first words of a command line are now, None where they have not moved."""
    for count in (2, 1):
        if (old := " ".join(words[:count])) in MOVED:
            return f"gpuwaste {old} is now gpuwaste {MOVED[old]}"
    return None
