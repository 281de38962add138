"""GET /v1/models/trial: how the model on trial fares; for operators."""

from fastapi import FastAPI, Request, Response

from gpuwaste.advice.renewal.trial_types import TrialDocument
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.openapi import answers


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    renewal = exchange.services.renewal

    @app.get("/v1/models/trial", responses=answers(TrialDocument))
    async def trial(request: Request) -> Response:
        """Return the last comparison of the model in use with the one on trial and with the baseline."""
        return await exchange.document(request, renewal.trial)
