"""/v1/plan: when jobs would start."""

from fastapi import FastAPI, Request, Response

from gpuwaste.advice.predict.predict_body import PredictQuestion
from gpuwaste.hub.exchange import Exchange, Name
from gpuwaste.hub.openapi import answers, body
from gpuwaste.plan.document import ExpectAnswer, PlansRecorded, SubmittedPlan, WaitTableAnswer


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    expectations, recorded = exchange.services.expectations, exchange.services.recorded_plans

    @app.get("/v1/plan", responses=answers(ExpectAnswer))
    async def expect_job(request: Request, job: Name) -> Response:
        """Return when a job that waits is expected to start and end: 7, 3_1 or 4+1."""
        return await exchange.document(request, lambda scope: expectations.for_job(scope, job))

    @app.post("/v1/plan", responses=answers(ExpectAnswer), openapi_extra=body(PredictQuestion))
    async def expect(request: Request) -> Response:
        """Return when requests would start and end if they were submitted now: the caller's own."""
        return await exchange.order(request, expectations.for_requests)

    @app.post("/v1/plan/submitted", responses=answers(PlansRecorded), openapi_extra=body(SubmittedPlan))
    async def submitted(request: Request) -> Response:
        """Record the plan of the caller's own jobs as their verdict: once for each job."""
        return await exchange.order(request, recorded.record)

    @app.get("/v1/plan/waits", responses=answers(WaitTableAnswer))
    async def waits(request: Request) -> Response:
        """Return how long jobs of each shape would wait; for operators and advisors."""
        return await exchange.document(request, expectations.waits)
