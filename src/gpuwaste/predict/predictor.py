"""Predictor: a model, what the site's history is at this moment, and a request: what is to be expected of the job."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.request import JobRequest
from gpuwaste.predict import whatif
from gpuwaste.predict.explain import reasons
from gpuwaste.predict.features import FEATURES
from gpuwaste.predict.history import from_history
from gpuwaste.predict.manifest import TargetModel
from gpuwaste.predict.prediction import Prediction, Source, TargetPrediction
from gpuwaste.predict.request_json import request_to_json
from gpuwaste.predict.scores import Correction, Model, applies, probabilities, quantiles
from gpuwaste.predict.targets import BY_NAME, TARGETS
from gpuwaste.predict.view import View

NO_MODEL: Final = "no model of this site: this is what your last jobs say, not an estimate"
NO_HISTORY: Final = "none of your jobs has ended yet in the history that is known here"
_NAMES: Final = tuple(feature.name for feature in FEATURES)
_LEAST_P: Final = 0.01  # a smaller effect on a probability is no reason
_LEAST_LOG: Final = 0.05  # a smaller effect on the logarithm of a median is no reason


class State(Protocol):
    """What is asked of the site's history."""

    def vector(self, request: JobRequest) -> NDArray[np.float32]:
        """Return float32 [F], what is known at the request's submission."""
        ...


class Predictor:
    """Answers requests. The state belongs to the caller, who keeps it up to date between calls; nothing is changed."""

    def __init__(self, bundle: Model | None, state: State, rolling: Correction | None = None) -> None:
        """Take a bundle (None: history alone speaks), the state, and the rolling correction of that bundle."""
        self._bundle = bundle
        self._state = state
        self._rolling = rolling if bundle is not None else None

    def predict(self, request: JobRequest) -> Prediction:
        """Return every target of one request, with reasons, and what a smaller request would change."""
        vector = self._state.vector(request)
        view = View.of(request, _NAMES, vector)
        said = tuple(self._with_reasons(target, view, vector) for target in self._score([request], [vector])[0])
        bundle = self._bundle
        return Prediction(
            request=request_to_json(replace(request, script=None)),
            model=bundle.manifest.name if bundle else "",
            model_hash=bundle.hash if bundle else "",
            targets=said,
            changes=whatif.changes(request, said, self._again),
            notes=self._notes(view, said),
        )

    def _again(self, requests: Sequence[JobRequest]) -> list[tuple[TargetPrediction, ...]]:
        """Return the targets of other requests of the same user, without reasons."""
        return self._score(requests, [self._state.vector(request) for request in requests])

    def _score(
        self, requests: Sequence[JobRequest], vectors: Sequence[NDArray[np.float32]]
    ) -> list[tuple[TargetPrediction, ...]]:
        """Return the targets of each request, one call of each model for all of them."""
        found: list[list[TargetPrediction]] = [[] for _ in requests]
        models = {model.target: model for model in self._bundle.manifest.targets} if self._bundle else {}
        rows = np.stack(vectors)
        for target in TARGETS:
            if target.name in models:
                answers = self._from_model(models[target.name], requests, rows)
            else:
                answers = [
                    from_history(target.name, View.of(request, _NAMES, vector))
                    for request, vector in zip(requests, vectors, strict=True)
                ]
            for place, answer in enumerate(answers):
                if answer is not None and applies(target.name, requests[place]):
                    found[place].append(answer)
        return [tuple(targets) for targets in found]

    def _from_model(
        self, model: TargetModel, requests: Sequence[JobRequest], rows: NDArray[np.float32]
    ) -> list[TargetPrediction | None]:
        raw = self._raw(model.target, rows)
        base = TargetPrediction(model.target, self._source, model.rows)
        if BY_NAME[model.target].kind == "probability":
            return [
                replace(base, p=float(p), level=level(model, float(p)))
                for p in probabilities(model, raw, self._rolling)
            ]
        values = quantiles(model, raw, requests, self._rolling)
        names = [f"{q:g}" for q in model.quantiles]
        return [replace(base, quantiles=dict(zip(names, map(float, row), strict=True))) for row in values]

    def _with_reasons(self, said: TargetPrediction, view: View, vector: NDArray[np.float32]) -> TargetPrediction:
        bundle = self._bundle
        if bundle is None or said.source == "history":
            return said
        model = next(m for m in bundle.manifest.targets if m.target == said.target)

        def score(rows: NDArray[np.float32]) -> NDArray[np.float64]:
            raw = self._raw(model.target, rows)
            if said.p is not None:
                return probabilities(model, raw, self._rolling)
            middle = min(range(len(model.quantiles)), key=lambda i: abs(model.quantiles[i] - 0.5))
            logs: NDArray[np.float64] = raw[:, middle].astype(np.float64)
            return logs

        least = _LEAST_P if said.p is not None else _LEAST_LOG
        found = reasons(view, vector, bundle.manifest.references, score, least)
        if said.p is None:  # from logarithms to the unit of the quantile
            middle = said.quantiles[min(said.quantiles, key=lambda q: abs(float(q) - 0.5))]
            found = tuple(replace(r, effect=middle * (1 - math.exp(-r.effect))) for r in found)
        return replace(said, reasons=found)

    def _raw(self, target: str, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        assert self._bundle is not None  # noqa: S101 only called where there is one
        return self._bundle.raw(target, rows)

    @property
    def _source(self) -> Source:
        return "site model" if self._bundle and self._bundle.manifest.origin == "site" else "baseline"

    def _notes(self, view: View, said: Sequence[TargetPrediction]) -> tuple[str, ...]:
        notes = []
        if self._bundle is None or self._bundle.manifest.origin != "site":
            notes.append(NO_MODEL)
        else:
            spoken = {target.target for target in said if target.source != "history"}
            notes += [
                f"no model of {name}: {why}"
                for name, why in sorted(self._bundle.manifest.left_out.items())
                if name not in spoken and name in BY_NAME and applies(name, view.request)
            ]
        if view.get("user_ended") in {None, 0.0}:
            notes.append(NO_HISTORY)
        return tuple(notes)


def level(model: TargetModel, p: float) -> str:
    """Return the highest operating point that a probability reaches, "" for none."""
    reached = [(threshold, name) for name, threshold in model.thresholds.items() if p >= threshold]
    return max(reached)[1] if reached else ""
