"""The commands as `gpuwaste help` shows them: by reader and subject, each with its actions."""

from collections.abc import Collection, Iterator
from textwrap import wrap
from typing import Final

GROUPS: Final[dict[str, str]] = {
    "Your jobs": "report  job  now  idle  keep  appeal  predict  plan  estimate  notify  web",
    "Site": "look  analyze  simulate {run, what-if, compare, generate, sweep}  export  effect",
    "Advice": (
        "policy {check, explain, replay, verdicts}  "
        "rules {check, explain, replay, list, actions, approve, refuse, stop, resume, restore}"
    ),
    "Data": (
        "history {import, status}  events {list, kinds, check, status}  "
        "model {train, evaluate, calibrate, list, show, status, promote, rollback, add, prune, trial}"
    ),
    "Admin": (
        "doctor  config {check, show}  agent {status, release}  hub {backup, restore, move, erase}  "
        "digest {preview, list, replay, run}"
    ),
    "Daemons": "hub run  agent run  advisor run  actor run  mcp",
}
"""By heading: the commands of the group, two blanks apart. A command that is in none is shown under `More`."""
_MORE: Final = "More"
_GAP: Final = "  "
_HANG: Final = "    "
_LEAST: Final = 20  # columns of text beside the headings


def grouped(names: Collection[str], width: int) -> str:
    """Return the groups as text of that width; commands of `names` that no group has come last."""
    rows = [(heading, list(_entries(commands))) for heading, commands in GROUPS.items()]
    known = {entry.split()[0] for _, entries in rows for entry in entries}
    if missing := [name for name in sorted(names) if name not in known]:
        rows.append((_MORE, missing))
    indent = max(len(heading) for heading, _ in rows) + len(_GAP) + 1
    return "\n".join(_row(heading, entries, indent, width) for heading, entries in rows)


def _entries(commands: str) -> Iterator[str]:
    """Yield the commands of a group, each with its actions in braces."""
    yield from (entry for entry in commands.split(_GAP) if entry)


def _row(heading: str, entries: list[str], indent: int, width: int) -> str:
    """Return a heading with its commands; the actions of a command share a line where they fit on one."""
    lines, room = [""], width - indent
    for entry in entries:
        if lines[-1] and len(lines[-1]) + len(_GAP) + len(entry) > room:
            lines.append("")
        lines[-1] += (_GAP if lines[-1] else "") + entry
    wrapped = [part for line in lines for part in wrap(line, max(room, _LEAST), subsequent_indent=_HANG)]
    return "\n".join((heading if place == 0 else "").ljust(indent) + line for place, line in enumerate(wrapped))
