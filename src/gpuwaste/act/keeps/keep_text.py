"""Keeps as words for a terminal."""

from typing import Final

from gpuwaste.act.keeps.keep_types import KeepAnswer, KeepsDocument
from gpuwaste.core.text import harmless
from gpuwaste.core.units import HOUR_S, say_duration
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import fit, local_time

_REASON: Final = 40  # columns


def keep_text(document: KeepAnswer, look: Look) -> str:
    """Render the answer to an order: what is kept until when, what it could not stop, what is left of the budget."""
    lines = [
        f"{harmless(one.printed_id)} (started {local_time(one.start, look.zone)}): rules wait until"
        f" {local_time(one.until, look.zone)}"
        for one in document.keeps
    ]
    if document.stopped:
        lines.append(f"{document.stopped} {'action that' if document.stopped == 1 else 'actions that'} waited: dropped")
    for late in document.too_late:
        at = "" if late.sent is None else f" at {local_time(late.sent, look.zone)}"
        lines.append(f"{harmless(late.printed_id)}: too late, {late.action} was sent{at}")
    if document.left_h is not None:
        left = say_duration(document.left_h * HOUR_S)
        lines.append(f"left of your budget of 7 days: {left}, {document.left_keeps} keeps")
    return "\n".join(lines) + "\n"


def keeps_text(document: KeepsDocument, look: Look) -> str:
    """Render keeps as a table."""
    rows = document.keeps
    lines = look.title("Kept jobs") if look.header else []
    lines += look.fitted(
        [
            Column("REQUESTED", [local_time(row.at, look.zone) for row in rows], left=True, rank=1),
            Column("UNTIL", [_until(row.until, document.generated, look) for row in rows], left=True),
            Column("JOB", [row.printed_id for row in rows], left=True),
            Column("USER", [fit(row.user, 16) for row in rows], left=True),
            Column("KEPT BY", [fit(row.asked_by, 16) for row in rows], left=True, rank=2),
            Column("REASON", [fit(row.reason, _REASON) for row in rows], left=True),
        ]
    )
    return "\n".join(lines) + "\n"


def _until(until: int, now: int, look: Look) -> str:
    return f"{local_time(until, look.zone)}{'' if until > now else ' (over)'}"
