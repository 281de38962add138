"""GET /v1/verdicts: the verdicts at submission and their score."""

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from gpuwaste.advice.verdicts.verdict_reads import MAX_VERDICTS
from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
from gpuwaste.advice.verdicts.verdict_store import VerdictQuestion
from gpuwaste.advice.verdicts.verdict_types import VerdictsDocument
from gpuwaste.hub.exchange import Exchange, Name, Number
from gpuwaste.hub.openapi import answers


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    verdicts = exchange.services.verdicts

    @app.get("/v1/verdicts", responses=answers(VerdictsDocument))
    async def listed(
        request: Request,
        *,
        user: Name | None = None,
        policy: Name | None = None,
        start: Number | None = None,
        end: Number | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_VERDICTS)] = 1000,
    ) -> Response:
        """List verdicts and how their jobs ended, newest first; times are UTC seconds, by default the last 7 days."""
        question = VerdictQuestion(user, policy, start, end, limit)
        return await exchange.document(request, lambda scope: verdicts.listed(scope, question))

    @app.get("/v1/verdicts/score", responses=answers(ScoreDocument))
    async def score(request: Request, since: Number | None = None) -> Response:
        """Score the verdicts since UTC second `since`, 30 days ago by default; for operators and advisors."""
        return await exchange.document(request, lambda scope: verdicts.score(scope, since))
