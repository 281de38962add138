"""/verdicts: the advice at submission, how the jobs ended, and for operators how often it was right."""

from dataclasses import replace
from typing import Final

from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
from gpuwaste.advice.verdicts.verdict_types import VerdictsDocument
from gpuwaste.show.environment import Frame, page

ROWS: Final = 50
DAYS: Final = 7


def verdicts_page(document: VerdictsDocument, score: ScoreDocument | None, number: int, frame: Frame) -> str:
    """Return the page of verdicts; `score` is None for a reader who may not see it."""
    first = (number - 1) * ROWS
    rows = document.verdicts[first : first + ROWS]
    return page(
        "verdicts",
        replace(frame, links={"csv": "/verdicts.csv", "json": "/verdicts.json"}),
        document=document,
        score=score,
        rows=rows,
        first=first,
        before=f"/verdicts?page={number - 1}" if number > 1 else None,
        after=f"/verdicts?page={number + 1}" if first + len(rows) < len(document.verdicts) else None,
        days=DAYS,
    )
