"""Rewriter: the narrative of a view as worded by a language model, if it has an acceptable wording.

A worker asks the model once a day for each rule's sentence; a document never waits for it. Requests contain no values,
so that an answer serves every window, and no user's name ever reaches the model.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import WireError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.text import harmless
from gpuwaste.core.worker import Worker
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.views.language_model import LanguageModel, ModelAnswerError
from gpuwaste.views.narrative import complete, narrate
from gpuwaste.views.rewrite import REFUSED, cleaned, place, refusal
from gpuwaste.views.view import view_named

RESULTS: Final = ("worded", "no_answer", "bad_answer", *REFUSED)
"""The possible results of a request for a sentence."""

_KEPT_US: Final = 86_400_000_000
_AGAIN_S: Final = 60.0
_MOST: Final = 512
_FAILED: Final = log_event.warning(
    "views-model-failed: cannot get sentences of views from the language model: {error}",
    "Check [analytics] model_url and model. Views have the sentences by rules; retry in a minute.",
)
_REFUSED: Final = log_event.info(
    "views-model-refused: sentence of the language model rejected ({reason}), the sentence by rules is used: {sentence}"
)


@dataclass(frozen=True, slots=True)
class _Worded:
    template: str | None
    until_us: int


class Rewriter:
    """Rewords narratives. One worker sends requests; any thread may call `document`."""

    def __init__(self, model: LanguageModel, clock: Clock, count: Callable[[str], object] = lambda _: None) -> None:
        """`count` is called with one of RESULTS for each requested sentence."""
        self._model = model
        self._clock = clock
        self._count = count
        self._lock = threading.Lock()
        self._kept: dict[str, _Worded] = {}
        self._wanted: dict[str, None] = {}
        self._trouble = RepeatSuppressor()
        self._logged: set[str] = set()
        self.worker = Worker("view-words", self.step, clock)

    def document(self, document: ViewDocument) -> ViewDocument:
        """Return the document with the model's available wordings; the missing ones are queued."""
        rules = self._rules(document)
        with self._lock:
            known = {rule: kept.template for rule in rules if (kept := self._fresh(rule)) is not None}
            missing = [rule for rule in rules if rule not in known and rule not in self._wanted]
            self._wanted.update(dict.fromkeys(missing[: max(0, _MOST - len(self._wanted))]))
        if missing:
            self.worker.wake()
        return self._placed(document, [known.get(rule) for rule in rules])

    def asked(self, document: ViewDocument) -> ViewDocument:
        """Return the document with the model's wordings, requested now; a model that fails is asked only once."""
        rules = self._rules(document)
        for rule in rules:
            with self._lock:
                known = self._fresh(rule) is not None
            if not known and (self._trouble.times or not self._ask(rule)):
                break
        with self._lock:
            found = [kept.template if (kept := self._fresh(rule)) is not None else None for rule in rules]
        return self._placed(document, found)

    def step(self) -> float | None:
        """Request one queued sentence; return the seconds until the next one."""
        with self._lock:
            rule = next(iter(self._wanted), None)
        if rule is None:
            return None
        if not self._ask(rule):
            return _AGAIN_S
        with self._lock:
            self._wanted.pop(rule, None)
            return 0.0 if self._wanted else None

    def _rules(self, document: ViewDocument) -> list[str]:
        """Return the rules' sentences that the narrative consists of; none if it consists of anything else."""
        rules = complete(view_named(document.view).sentences, document.facts)
        return rules if narrate(rules, document.facts) == list(document.narrative) else []

    def _fresh(self, rule: str) -> _Worded | None:
        kept = self._kept.get(rule)
        return kept if kept is not None and self._clock.mono_us() < kept.until_us else None

    def _ask(self, rule: str) -> bool:
        """Request a sentence and store the result; return whether the model answered."""
        try:
            answer = cleaned(self._model.worded(rule))
            result: str = refusal(answer, rule) or "worded"
        except ModelAnswerError as error:
            result, answer = "bad_answer", str(error)
        except WireError as error:
            self._count("no_answer")
            if self._trouble.news("no answer"):
                _FAILED.log(error=harmless(str(error)))
            return False
        self._trouble.over()
        self._count(result)
        if result not in {"worded", "unchanged", *self._logged}:
            self._logged.add(result)
            _REFUSED.log(reason=result, sentence=harmless(answer[:200]))
        with self._lock:
            until_us = self._clock.mono_us() + _KEPT_US
            self._kept[rule] = _Worded(answer if result == "worded" else None, until_us)
        return True

    def _placed(self, document: ViewDocument, templates: list[str | None]) -> ViewDocument:
        places = [number for number, template in enumerate(templates) if template is not None]
        if not places:
            return document
        narrative = [
            own if template is None else place(template, document.facts)
            for own, template in zip(document.narrative, templates, strict=True)
        ]
        name = harmless(self._model.name)[:64]
        which = (
            f"sentence{'s' if len(places) > 1 else ''} {', '.join(str(number + 1) for number in places)}"
            if len(places) < len(narrative)
            else "all"
        )
        note = (
            f"The language model {name} worded {which} of the text. It did not get the values: gpuwaste checked the "
            "words and put the numbers and names in."
        )
        return replace(document, narrative=narrative, model=name, model_sentences=places, notes=[*document.notes, note])
