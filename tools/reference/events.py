"""events.md, from the calls of the log in the code; a warning or an error without its meaning stops `make docs`."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, get_args

from gpuwaste.core.history import EventKind
from tools.reference import source
from tools.reference.event_meanings import DEFECT, MEANINGS, PLUGIN, SHOWN
from tools.reference.findings import modules as findings
from tools.reference.markdown import code, document, table

_LEVELS: Final = {"info": "info", "warning": "warning", "error": "error", "exception": "error", "critical": "critical"}
_LOGS: Final = ("_log", "_LOG", "log")
_TROUBLE: Final = "events.trouble"
_NOTE: Final = "events.note"
_DEFECT: Final = "defect "
_INTRO: Final = """
What the services write to the journal, one line an event; `{}` stands for a value. Lines of hub and advisor begin with
`gpuwaste.` and the module, lines of the agent with the words themselves. `journalctl -p warning -u 'gpuwaste-*'` shows
those that ask for something. How lines are counted and limited: [the services](../how-to/services.md#the-log); where to
begin: [troubleshooting](../how-to/troubleshooting.md).
"""
_PARTS: Final = (
    ("Of the agent", ("agent",)),
    ("Of the hub", ("hub",)),
    ("Of the advisor", ("advisor",)),
    (
        "Of several services",
        ("core", "documents", "history", "ingest", "policy", "predict", "slurm", "wire", "models", "cli"),
    ),
)
_PLUGINS: Final = ("plugins/job_submit/common", "plugins/job_submit/c", "plugins/job_submit/lua")
_SAID: Final = re.compile(r'\b(?:gw_say\([\w>-]+, |slurm_(?:error|info)\()("gpuwaste: (?:[^"]|" PRIu64 ")*")')
_VALUE: Final = re.compile(r"%(?:ll)?[sdu]")
_KINDS: Final = {
    "submitted": "a job is queued: the request alone",
    "started": "a run has begun",
    "ended": "a run is over: its outcome, and what it used",
    "ledger": "more is known of the use of its GPUs",
}


class Event(NamedTuple):
    """One call of the log."""

    module: str
    level: str
    words: str

    @property
    def key(self) -> tuple[str, str]:
        """What its meaning is found by."""
        return self.module, self.words

    @property
    def meaning(self) -> str:
        """Return the meaning, "" where none is needed or known."""
        return DEFECT if self.words.startswith(_DEFECT) else MEANINGS.get(self.key, "")


def events() -> Iterator[Event]:
    """Yield every event of the services that is not for debugging alone."""
    for module, tree in source.modules():
        for call in source.calls(tree):
            base, _, last = source.called(call).rpartition(".")
            if base in _LOGS and last in _LEVELS and call.args:
                yield Event(module, _LEVELS[last], source.filled(source.words(call.args[0])))
            elif source.called(call).endswith(_NOTE):
                yield Event(module, "info", source.words(call.args[0]))
            elif source.called(call).endswith(_TROUBLE):
                level = source.argument(call, 2, "level")
                named = "warning" if level is None else source.called_name(level)
                yield Event(module, named, f"{source.words(call.args[0])}: {source.words(call.args[1])}")


def unexplained() -> list[Event]:
    """Return the warnings and errors that have no meaning."""
    return [event for event in events() if event.level != "info" and not event.meaning]


def left_over() -> set[tuple[str, str]]:
    """Return the meanings of events that are no more."""
    return (set(MEANINGS) | set(SHOWN)) - {event.key for event in events()}


def plugin_lines() -> Iterator[str]:
    """Yield each line that the submit plugins write to slurmctld's log."""
    for folder in _PLUGINS:
        for path in sorted((source.ROOT / folder).glob("*.c")):
            for text in _SAID.findall(path.read_text(encoding="utf-8")):
                yield _VALUE.sub("{}", text.replace('" PRIu64 "', "u").strip('"'))


def page() -> str:
    """Return the page. Raises ValueError where an event asks for something and nothing says what."""
    if missing := unexplained():
        raise ValueError(f"tools/reference/event_meanings.py lacks {missing[0].key}")
    found = list(dict.fromkeys(events()))
    parts = [_INTRO]
    for title, rooms in _PARTS:
        own = [event for event in found if event.module.partition(".")[0] in rooms]
        parts += [f"## {title}", _table([event for event in own if event.level != "info"])]
        quiet = [event.words for event in own if event.level == "info" and event.words != "{}"]
        parts.append("That all is well, or works again: " + "; ".join(map(code, dict.fromkeys(quiet))) + ".")
    lines = list(dict.fromkeys(plugin_lines()))
    if wrong := set(lines) ^ set(PLUGIN):
        raise ValueError(f"tools/reference/event_meanings.py and the plugins' lines differ: {min(wrong)}")
    parts.append("## Of the submit plugins\n\nIn slurmctld's log; the Lua side begins with `gpuwaste.lua:` besides.")
    parts.append(table(("line", "meaning, what to do"), [(code(line), PLUGIN[line]) for line in lines]))
    parts.append("The prolog's health gate writes to syslog: [its page](../how-to/health-gate.md).")
    parts.append("## Events of the history\n\nWhat `GET /v1/history` tells, in the order in which the hub learnt it.")
    parts.append(table(("kind", "meaning"), [(code(kind), _KINDS[kind]) for kind in get_args(EventKind)]))
    parts.append("## Findings\n\nWhat a report's notes name; [each with its thresholds](findings.md).")
    parts.append(", ".join(code(name) for name in findings()) + ".")
    return document("Events", *parts)


def _table(rows: list[Event]) -> str:
    cells = [
        (event.level, code(SHOWN.get(event.key, event.words)), event.module, event.meaning)
        for event in sorted(rows, key=lambda event: event.module)
    ]
    return table(("level", "line", "module", "meaning, what to do"), cells)
