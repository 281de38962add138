"""/v1/predict: predictions for jobs."""

from fastapi import FastAPI, Request, Response

from gpuwaste.advice.predict.predict_body import PredictQuestion
from gpuwaste.advice.predict.prediction_types import PredictAnswer
from gpuwaste.hub.exchange import Exchange, Name
from gpuwaste.hub.openapi import answers, body


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    predictions = exchange.services.predictions

    @app.get("/v1/predict", responses=answers(PredictAnswer))
    async def predict_job(request: Request, job: Name) -> Response:
        """Predict a job in Slurm from what was known at its submission: 7, 3_1 or 4+1."""
        return await exchange.document(request, lambda scope: predictions.for_job(scope, job))

    @app.post("/v1/predict", responses=answers(PredictAnswer), openapi_extra=body(PredictQuestion))
    async def predict(request: Request) -> Response:
        """Predict jobs as they would be submitted now: JSON, the caller's own; an operator may name any user."""
        return await exchange.order(request, predictions.for_requests)
