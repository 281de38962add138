"""/v1/plan: when jobs would start."""

from fastapi import FastAPI, Request, Response

from gpuwaste.hub.exchange import Exchange, Name
from gpuwaste.hub.openapi import answers, body
from gpuwaste.hub.predict_body import PredictQuestion
from gpuwaste.plan.document import ExpectAnswer


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    expectations = exchange.services.expectations

    @app.get("/v1/plan", responses=answers(ExpectAnswer))
    async def expect_job(request: Request, job: Name) -> Response:
        """Return when a job that waits is expected to start and end: 7, 3_1 or 4+1."""
        return await exchange.document(request, lambda scope: expectations.for_job(scope, job))

    @app.post("/v1/plan", responses=answers(ExpectAnswer), openapi_extra=body(PredictQuestion))
    async def expect(request: Request) -> Response:
        """Return when requests would start and end if they were submitted now: the caller's own."""
        return await exchange.order(request, expectations.for_requests)
