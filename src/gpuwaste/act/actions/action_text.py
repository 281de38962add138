"""Actions as words for a terminal."""

from typing import Final

from gpuwaste.act.actions.action_types import ActionDocument, ActionEntry, ActionsDocument
from gpuwaste.show.layout import Column, Look, wrapped
from gpuwaste.show.terminal_cells import local_time

_ID: Final = 12  # characters of an id that `show` accepts
_FACTS: Final = 2000


def actions_text(document: ActionsDocument, look: Look) -> str:
    """Render actions, a line each with the reason of its status below."""
    lines = look.title("Actions") if look.header else []
    if document.stopped is not None:
        lines.append(
            f"  STOPPED since {local_time(document.stopped, look.zone)}: run gpuwaste rules resume to continue"
        )
    if not document.actor:
        lines.append("  no actor has contacted the hub for a minute: only mail is sent; start gpuwaste actor run")
    if not document.actions:
        return "\n".join([*lines, "no actions in this window"]) + "\n"
    rows = document.actions
    lines += look.fitted(
        [
            Column("ID", [row.id[:_ID] for row in rows], left=True),
            Column("DECIDED", [local_time(row.decided, look.zone) for row in rows], left=True, rank=1),
            Column("ACTION", [row.kind for row in rows], left=True),
            Column("STATUS", [_status(row) for row in rows], left=True),
            Column("SUBJECT", [_subject(row) for row in rows]),
        ]
    )
    return "\n".join(lines) + "\n"


def action_text(document: ActionDocument, look: Look) -> str:
    """Render one action with its steps: what the rule saw, who approved, Slurm's answer, how the run ended."""
    row = document.action
    person = f"{row.person}, {local_time(row.person_at, look.zone)}" if row.person else ""
    run_end = f"{row.run_state} {local_time(row.run_end, look.zone)}" if row.run_end is not None else row.run_state
    pairs = [
        ("action", row.kind),
        ("status", f"{_status(row)} since {local_time(row.since, look.zone)}"),
        ("reason", row.reason),
        ("subject", row.subject),
        ("user", f"{row.user} ({row.account})" if row.account else row.user),
        ("rule", f"{row.rule} ({row.rule_hash[:_ID]})" if row.rule else ""),
        ("decided", local_time(row.decided, look.zone)),
        ("expires", local_time(row.expires, look.zone)),
        ("decided by", person),
        (
            "sent",
            f"{local_time(row.sent, look.zone)}, {row.sends} {'time' if row.sends == 1 else 'times'}"
            if row.sends
            else "",
        ),
        ("answer", row.answer),
        ("run ended", run_end),
    ]
    lines = look.title(f"Action {row.id[:_ID]}") if look.header else []
    lines += look.facts([(name, value) for name, value in pairs if value])
    for name, values in (("Options", row.options), ("Read in Slurm", row.plan)):
        if values:
            lines += ["", f"{name}:"]
            for key, value in sorted(values.items()):
                lines += wrapped(f"{key}: {value}", look.prose, "  ", "    ")
    if row.facts:
        lines += ["", "What the rule saw:", *wrapped(row.facts[:_FACTS], look.prose, "  ", "  ")]
    return "\n".join(lines) + "\n"


def _status(row: ActionEntry) -> str:
    waits = row.status == "intended" and row.approve == "person"
    return "needs approval" if waits else row.status


def _subject(row: ActionEntry) -> str:
    return f"{row.job_id} {row.user}" if row.job_id is not None else row.subject
