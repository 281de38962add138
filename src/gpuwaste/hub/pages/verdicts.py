"""/verdicts and /models within the reader's scope; the score is for operators."""

from collections.abc import Callable

from fastapi import Response
from msgspec.structs import replace
from starlette.datastructures import QueryParams

from gpuwaste.advice.renewal.models_page import models_page
from gpuwaste.advice.verdicts.verdict_reads import VerdictReads
from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
from gpuwaste.advice.verdicts.verdict_store import VerdictQuestion
from gpuwaste.advice.verdicts.verdict_types import VerdictsDocument
from gpuwaste.advice.verdicts.verdicts_page import verdicts_page
from gpuwaste.core.request_coalescer import RequestCoalescer
from gpuwaste.core.scope import Scope
from gpuwaste.hub.pages.forms import in_form
from gpuwaste.hub.pages.question import page_number
from gpuwaste.ledger.disputes.disputes import Disputes
from gpuwaste.net.health import HealthAnswer
from gpuwaste.show.environment import Frame


class VerdictViews:
    """The pages of verdicts and of the model that made them."""

    def __init__(self, verdicts: VerdictReads, disputes: Disputes, health: Callable[[], HealthAnswer]) -> None:
        self._verdicts = verdicts
        self._disputes = disputes
        self._health = health
        self._asked = RequestCoalescer[str, VerdictsDocument]()

    def listed(self, scope: Scope, frame: Frame, query: QueryParams, form: str) -> Response:
        """Answer with the verdicts of the last days. Raises Refusal."""
        document = self._asked.ask(scope, form, lambda _: {form: self._verdicts.listed(scope, VerdictQuestion())})
        if document is None:
            document = self._verdicts.listed(scope, VerdictQuestion())
        if scope.everything:
            document = replace(document, disputes=self._disputes.newest())
        number = page_number(query)
        return in_form(form, lambda: verdicts_page(document, self._score(scope), number, frame), lambda: document)

    def model(self, scope: Scope, frame: Frame, _: QueryParams, form: str) -> Response:
        """Answer with the model in use."""
        health = self._health().prediction
        return in_form(form, lambda: models_page(health, self._score(scope), frame), lambda: health)

    def _score(self, scope: Scope) -> ScoreDocument | None:
        return self._verdicts.recent_score(scope) if scope.everything else None
