"""The model in use and the one on trial: /v1/models/trial and the page /models.

Operators see how the probabilities held.
"""

from dataclasses import replace

from gpuwaste.advice.renewal.trial_types import TrialDocument
from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
from gpuwaste.core.scope import Scope
from gpuwaste.net.health_types import PredictionHealth
from gpuwaste.show.environment import Frame, page
from gpuwaste.show.resource import FORMS, NoQuestion, Page, PageRequest, Reading, Resource


def trial(reading: Reading, scope: Scope, _: NoQuestion) -> TrialDocument:
    """Return the last comparison of the model in use with the one on trial and with the baseline."""
    from gpuwaste.advice.renewal.renewal import Renewal

    return reading.get(Renewal).trial(scope)


def _document(asked: PageRequest) -> "PredictionHealth":
    from gpuwaste.advice.predict.prediction_service import Predictions

    return asked.reading.get(Predictions).health()


def _page(asked: PageRequest, document: "PredictionHealth") -> str:
    from gpuwaste.advice.verdicts.verdict_reads import VerdictReads

    score = asked.reading.get(VerdictReads).recent_score(asked.scope) if asked.scope.everything else None
    return models_page(document, score, asked.frame)


def models_page(health: PredictionHealth, score: ScoreDocument | None, frame: Frame) -> str:
    """Return the page of the model in use; `score` is None for a reader who may not see it."""
    return page("models", replace(frame, links={"json": "/models.json"}), health=health, score=score)


RESOURCES = (
    Resource(path="/v1/models/trial", question=NoQuestion, document=TrialDocument, read=trial),
    Page(path="/models", document=_document, html=_page, forms={".json": FORMS[".json"]}),
)
