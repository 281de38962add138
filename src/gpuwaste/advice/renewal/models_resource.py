"""The model in use and the one on trial: /v1/models/trial and the page /models."""

from typing import TYPE_CHECKING

from gpuwaste.advice.renewal.trial_types import TrialDocument
from gpuwaste.core.scope import Scope
from gpuwaste.show.resource import FORMS, NoQuestion, Page, PageRequest, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.net.health import PredictionHealth


def trial(reading: Reading, scope: Scope, _: NoQuestion) -> TrialDocument:
    """Return the last comparison of the model in use with the one on trial and with the baseline."""
    from gpuwaste.advice.renewal.renewal import Renewal

    return reading.get(Renewal).trial(scope)


def _document(asked: PageRequest) -> "PredictionHealth":
    from gpuwaste.advice.predict.predictions import Predictions

    return asked.reading.get(Predictions).health()


def _page(asked: PageRequest, document: "PredictionHealth") -> str:
    from gpuwaste.advice.renewal.models_page import models_page
    from gpuwaste.advice.verdicts.verdict_reads import VerdictReads

    score = asked.reading.get(VerdictReads).recent_score(asked.scope) if asked.scope.everything else None
    return models_page(document, score, asked.frame)


RESOURCES = (
    Resource(path="/v1/models/trial", question=NoQuestion, document=TrialDocument, read=trial),
    Page(path="/models", document=_document, html=_page, forms={".json": FORMS[".json"]}),
)
