"""Appeals as words for a terminal."""

from typing import Final

from gpuwaste.core.text import harmless
from gpuwaste.ledger.appeals.appeal_types import AppealDocument, AppealsDocument
from gpuwaste.ledger.reports.job_types import Appeal
from gpuwaste.show.layout import Column, Look, wrapped
from gpuwaste.show.terminal_cells import fit, local_time

_WORDS: Final = 40  # columns of a terminal
_KINDS: Final = {"judgement": "figures", "verdict": "advice", "action": "action"}


def appeals_text(document: AppealsDocument, look: Look) -> str:
    """Render appeals as a table, with the replies."""
    rows = document.appeals
    lines = look.title("Appeals") if look.header else []
    lines += look.fitted(
        [
            Column("ID", [row.id for row in rows], left=True),
            Column("TIME", [local_time(row.at_utc, look.zone) for row in rows], left=True, rank=2),
            Column("JOB", [row.printed_id or row.about for row in rows], left=True),
            Column("ABOUT", [_KINDS[row.kind] for row in rows], left=True),
            Column("USER", [fit(row.user, 12) for row in rows], left=True),
            Column("STATUS", [row.outcome or row.status for row in rows], left=True),
            Column("WHAT THEY SAY", [fit(row.words, _WORDS) for row in rows], left=True),
            Column("REPLY", [fit(row.reply, _WORDS) for row in rows], left=True, rank=1),
        ]
    )
    return "\n".join(lines) + "\n"


def appeal_text(document: AppealDocument, look: Look) -> str:
    """Render one appeal with its evidence and reply."""
    row = document.appeal
    lines = [f"appeal {row.id}: {subject_words(row)}, {row.outcome or row.status}"]
    lines += wrapped(harmless(row.words), look.prose, "  ", "  ")
    if row.reply:
        lines += [f"reply of {harmless(row.replied_by)}:", *wrapped(harmless(row.reply), look.prose, "  ", "  ")]
    return "\n".join(lines) + "\n"


def subject_words(appeal: Appeal) -> str:
    """Return what an appeal is about: figures of job 4711, advice 0abc, action 3f2a on job 4711."""
    job = f"job {harmless(appeal.printed_id)}" if appeal.printed_id else ""
    if appeal.kind == "judgement":
        return f"figures of {job}"
    words = f"{_KINDS[appeal.kind]} {appeal.about[:16]}"
    return f"{words} on {job}" if job else words
