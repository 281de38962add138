"""events.md, from the declarations of log events in the code, which are imported for that."""

import ast
import importlib
import logging
import re
from collections.abc import Iterator
from typing import Final, get_args

from gpuwaste.core.log_event import EVENTS, LogEvent
from gpuwaste.jobs.job_event import HistoryEventKind
from gpuwaste.ledger.balance.findings import STRAND_FINDINGS
from gpuwaste.ledger.findings import FINDINGS
from gpuwaste.ledger.right_size.findings import SIZE_FINDINGS
from tools.reference import source
from tools.reference.event_meanings import PLUGIN
from tools.reference.markdown import code, document, table

_INTRO: Final = """
What the services write to the journal: one line an event, `ID: text`; `{error}` stands for a value. Filters and alerts
match on the id, which stays the same across releases. `journalctl -p warning -u 'gpuwaste-*'` shows the events that
need attention. How repeats are counted and lines limited: [the services](../how-to/services.md#the-log); where to
begin: [troubleshooting](../how-to/troubleshooting.md).
"""
_PARTS: Final = {"agent": "Of the agent", "hub": "Of the hub", "advisor": "Of the advisor", "": "Of several services"}
_HUB: Final = tuple(
    f"gpuwaste.{room}."
    for room in (
        "act",
        "advice.live",
        "advice.predict.prediction_service",
        "advice.renewal",
        "advice.rescoring",
        "jobs",
        "ledger",
        "plan",
    )
)
_PLUGINS: Final = ("plugins/job_submit/common", "plugins/job_submit/c", "plugins/job_submit/lua")
_SAID: Final = re.compile(r'\b(?:gw_say\([\w>-]+, |slurm_(?:error|info)\()("gpuwaste: (?:[^"]|" PRIu64 ")*")')
_VALUE: Final = re.compile(r"%(?:ll)?[sdu]")
_FORMAT: Final = re.compile(r"[!:][^ }]+\}")  # how a value is written is no news for the reader
_KINDS: Final = {
    "submitted": "a job is queued: only the request",
    "started": "a run has begun",
    "ended": "a run is over: its outcome, and what it used",
    "ledger": "new data on the use of its GPUs",
}


def declared() -> list[LogEvent]:
    """Return the events of every shipped module, sorted by room and id."""
    for name, tree in source.modules():
        imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
        if any(alias.name == "log_event" for node in imports for alias in node.names):
            importlib.import_module(f"gpuwaste.{name.removesuffix('.__init__')}")
    return sorted((e for e in EVENTS if e.module.startswith("gpuwaste.")), key=lambda e: (_room(e), e.id))


def plugin_lines() -> Iterator[str]:
    """Yield each line that the submit plugins write to slurmctld's log."""
    for folder in _PLUGINS:
        for path in sorted((source.ROOT / folder).glob("*.c")):
            for text in _SAID.findall(path.read_text(encoding="utf-8")):
                yield _VALUE.sub("{}", text.replace('" PRIu64 "', "u").strip('"'))


def page() -> str:
    """Return the page."""
    parts, found = [_INTRO], declared()
    for room, title in _PARTS.items():
        own = [event for event in found if _room(event) == room]
        rows = [
            (code(event.id), logging.getLevelName(event.level).lower(), code(_plain(event)), event.remedy)
            for event in own
            if event.level > logging.INFO
        ]
        quiet = [code(f"{event.id}: {_plain(event)}") for event in own if event.level == logging.INFO]
        parts += [f"## {title}", table(("id", "level", "text", "meaning, what to do"), rows)]
        parts.append(f"Nothing to do: {'; '.join(quiet)}.")
    lines = list(dict.fromkeys(plugin_lines()))
    if wrong := set(lines) ^ set(PLUGIN):
        raise ValueError(f"tools/reference/event_meanings.py and the plugins' lines differ: {min(wrong)}")
    parts.append("## Of the submit plugins\n\nIn slurmctld's log; the Lua side begins with `gpuwaste.lua:` besides.")
    parts.append(table(("line", "meaning, what to do"), [(code(line), PLUGIN[line]) for line in lines]))
    parts.append("The prolog's health gate writes to syslog: [its page](../how-to/health-gate.md).")
    parts.append("## Events of the history\n\nWhat `GET /v1/history` tells, in the order in which the hub learnt it.")
    parts.append(table(("kind", "meaning"), [(code(kind), _KINDS[kind]) for kind in get_args(HistoryEventKind)]))
    parts.append("## Findings\n\nWhat a report's notes name; [each with its thresholds](findings.md).")
    parts.append(", ".join(code(name) for name in [*FINDINGS, *STRAND_FINDINGS, *SIZE_FINDINGS]) + ".")
    return document("Events", *parts)


def _plain(event: LogEvent) -> str:
    return _FORMAT.sub("}", event.text)


def _room(event: LogEvent) -> str:
    room = event.module.split(".")[1]
    if event.module.startswith(_HUB):
        return "hub"
    return room if room in _PARTS else ""
