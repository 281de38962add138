"""Predictions for jobs: /v1/predict."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuwaste.advice.predict.prediction_types import PredictAnswer
from gpuwaste.advice.predict.request_json import PredictQuestion
from gpuwaste.core.fields import Name
from gpuwaste.core.scope import Scope
from gpuwaste.show.resource import NoQuestion, Order, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.advice.predict.prediction_service import Predictions


@dataclass(frozen=True)
class PredictedJob:
    """Which job, as Slurm prints its id."""

    job: Name


def _predictions(reading: Reading) -> "Predictions":
    from gpuwaste.advice.predict.prediction_service import Predictions

    return reading.get(Predictions)


def predict_job(reading: Reading, scope: Scope, question: PredictedJob) -> PredictAnswer:
    """Predict a job in Slurm from what was known at its submission: 7, 3_1 or 4+1."""
    return _predictions(reading).for_job(scope, question.job)


def predict(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> PredictAnswer:
    """Predict jobs as they would be submitted now: JSON, the caller's own; an operator may name any user."""
    return _predictions(reading).for_requests(scope, body)


RESOURCES = (
    Resource(path="/v1/predict", question=PredictedJob, document=PredictAnswer, read=predict_job),
    Order(path="/v1/predict", body=PredictQuestion, question=NoQuestion, document=PredictAnswer, do=predict),
)
