"""The verdicts at submission and their score: /v1/verdicts, and the page /verdicts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
from gpuwaste.advice.verdicts.verdict_types import VerdictQuestion, VerdictsDocument
from gpuwaste.core.fields import Number
from gpuwaste.core.scope import Scope
from gpuwaste.show.page_query import page_number
from gpuwaste.show.resource import FORMS, Page, PageRequest, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.advice.verdicts.verdict_reads import VerdictReads


@dataclass(frozen=True)
class ScoreQuestion:
    """Since when, UTC seconds."""

    since: Number | None = None


def _verdicts(reading: Reading) -> "VerdictReads":
    from gpuwaste.advice.verdicts.verdict_reads import VerdictReads

    return reading.get(VerdictReads)


def listed(reading: Reading, scope: Scope, question: VerdictQuestion) -> VerdictsDocument:
    """List verdicts and how their jobs ended, newest first; times are UTC seconds, by default the last 7 days."""
    return _verdicts(reading).listed(scope, question)


def score(reading: Reading, scope: Scope, question: ScoreQuestion) -> ScoreDocument:
    """Score the verdicts since UTC second `since`, 30 days ago by default; for operators and advisors."""
    return _verdicts(reading).score(scope, question.since)


def _document(asked: PageRequest) -> VerdictsDocument:
    """Return the verdicts of the last days; for operators, with owners' appeals."""
    from gpuwaste.ledger.appeals.appeal_service import Appeals

    page_number(asked.query)  # an invalid one is rejected before anything is read
    document = _verdicts(asked.reading).recent(asked.scope, asked.form)
    return replace(document, appeals=asked.reading.get(Appeals).newest()) if asked.scope.everything else document


def _page(asked: PageRequest, document: VerdictsDocument) -> str:
    from gpuwaste.advice.verdicts.verdicts_page import verdicts_page

    found = _verdicts(asked.reading).recent_score(asked.scope) if asked.scope.everything else None
    return verdicts_page(document, found, page_number(asked.query), asked.frame)


RESOURCES = (
    Resource(path="/v1/verdicts", question=VerdictQuestion, document=VerdictsDocument, read=listed, standby=True),
    Resource(path="/v1/verdicts/score", question=ScoreQuestion, document=ScoreDocument, read=score, standby=True),
    Page(path="/verdicts", document=_document, html=_page, forms=FORMS, standby=True),
)
