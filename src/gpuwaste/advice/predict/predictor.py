"""Predictor: from a model, the current state of the site's history and a request to the job's prediction."""

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict import changes
from gpuwaste.advice.predict.explain import reasons
from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.from_history import from_history, gpus_needed, own_sentences, usually_late
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.advice.predict.prediction_types import PredictDocument, RequestChange, Scored, Source, TargetPrediction
from gpuwaste.advice.predict.rolling import Rolling, busy_columns
from gpuwaste.advice.predict.targets import ASKED, BY_NAME, OF_THE_LEDGER, TARGETS
from gpuwaste.advice.predict.vector_words import ENDED, VectorView
from gpuwaste.advice.predict.vectors import vector_of, vectors_of
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.recall import Recall
from gpuwaste.jobs.job_event import ScriptSays
from gpuwaste.slurm.submit.job_request import JobRequest

Vector = NDArray[np.float32]
NO_MODEL: Final = "no model of this site: this counts your last jobs and is not an estimate"
NO_HISTORY: Final = "no job of yours has ended yet, as far as is known here"
_NAMES: Final = tuple(feature.name for feature in FEATURES)
_BUSY: Final = busy_columns(_NAMES)
ALL: Final = frozenset(target.name for target in TARGETS)
_LEAST_P: Final = 0.01  # a smaller effect on a probability gives no reason
_LEAST_LOG: Final = 0.05  # a smaller effect on the logarithm of a median gives no reason


class ScoringModel(Protocol):
    """The interface of a bundle that a predictor uses; `predict.bundle.Bundle` has it."""

    @property
    def manifest(self) -> Manifest:
        """What the bundle holds."""
        ...

    @property
    def hash(self) -> str:
        """The sha256 of the manifest."""
        ...

    def raw(self, target: str, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return [n, 1] probabilities before calibration, or [n, quantiles] logarithms. Raises ModelError."""
        ...


def cap(target: str, request: JobRequest) -> float | None:
    """Return the upper bound of a quantity, None if nothing was requested: `request_cap` for one request."""
    asked: int | None = getattr(request, ASKED[target]) if target in ASKED else None
    return None if not asked else float(asked)


def applies(target: str, request: JobRequest) -> bool:
    """Return whether a target applies to a request: GPU targets apply if it has GPUs."""
    return request.gpus > 0 or target not in OF_THE_LEDGER


class Predictor:
    """Answers requests, from one thread at a time; state and corrections belong to the caller and are not changed."""

    def __init__(
        self,
        bundle: ScoringModel | None,
        state: HistoryState,
        rolling: Rolling | None = None,
        recall: Recall | None = None,
    ) -> None:
        """Take a bundle (None: job history only), the state, and optionally corrections and the user's own runs."""
        self._bundle = bundle
        self._state = state
        self._recall = recall
        self._models: dict[str, TargetModel] = {}
        site = bundle is not None and bundle.manifest.origin == "site"
        self._source: Source = "site model" if site else "baseline"
        self._levels: dict[str, tuple[str, ...]] = {}
        if bundle is not None:
            self._models = {model.target: model for model in bundle.manifest.targets}
            self._levels = {name: tuple(f"{q:g}" for q in model.quantiles) for name, model in self._models.items()}
            self._rolling = rolling or Rolling(bundle.manifest, bundle.hash)

    def predict(self, request: JobRequest) -> PredictDocument:
        """Return every target of one request, with reasons, and the effect of smaller requests."""
        vector = vector_of(self._state, request)
        view = VectorView.of(request, _NAMES, vector)
        said = self.explained(request, vector, self.scored(request, vector, ALL))
        bundle = self._bundle
        return PredictDocument(
            request=replace(request, script=None),
            model=bundle.manifest.name if bundle else "",
            model_hash=self.model_hash,
            targets=list(said),
            changes=list(self.changes(request, said)),
            notes=list(self._notes(view)),
            own_history=_has_history(view),
        )

    @property
    def model_hash(self) -> str:
        """The bundle's hash, "" without a model."""
        return self._bundle.hash if self._bundle else ""

    def vectors(self, requests: Sequence[JobRequest]) -> Vector:
        """Return the current features [n, F] of some requests."""
        return vectors_of(self._state, requests)

    def own(self, request: JobRequest) -> Mapping[str, tuple[str, ...]]:
        """Return sentences in exact numbers of the user's own last runs, by target."""
        return {} if self._recall is None else own_sentences(self._recall, request)

    def last_job(self, request: JobRequest) -> int | None:
        """Return the id of the user's last ended job of this name; None without one."""
        runs = self._recall.runs(request.user, request.name) if self._recall is not None and request.name else []
        return runs[0].job_id if runs else None

    def script_says(self, request: JobRequest, script: str) -> ScriptSays:
        """Return whether a run of this user and name failed with a script, given by its hash."""
        return "unknown" if self._recall is None else self._recall.script_says(request.user, request.name, script)

    def raws(self, vectors: Vector, wanted: Container[str]) -> dict[str, Vector]:
        """Return the raw output [n, 1 or quantiles] of each wanted target that has a model."""
        return {name: self._raw(name, vectors) for name in self._models if name in wanted}

    def scored(
        self, request: JobRequest, vector: Vector, wanted: Container[str], raw: Mapping[str, Vector] | None = None
    ) -> tuple[TargetPrediction, ...]:
        """Return the wanted targets of one request without a model's reasons: an advisor needs these for every job.

        `raw` has a row of `raws` for each target, if many requests were scored at once.
        """
        found: list[TargetPrediction] = []
        row = vector[None]
        view: VectorView | None = None
        busy = bool(self._models) and bool((vector[_BUSY] > 0).any())
        for target in TARGETS:
            name = target.name
            if name not in wanted or not applies(name, request):
                continue
            model = self._models.get(name)
            if model is not None:
                output = self._raw(name, row)[0] if raw is None else raw[name]
                found.append(self._from_model(model, output, request, busy=busy))
                continue
            view = view or VectorView.of(request, _NAMES, vector)
            if answer := self._own(name, request) or from_history(name, view, self._state.under_use):
                found.append(answer)
        return tuple(found)

    def scored_all(self, requests: Sequence[JobRequest]) -> list[Scored]:
        """Return every target of many requests without a model's reasons; shared work is done once."""
        vectors = self.vectors(requests)
        said = zip(requests, vectors, self._all_targets(requests, vectors), strict=True)
        return [Scored(targets, usually_late(VectorView.of(one, _NAMES, vector))) for one, vector, targets in said]

    def explained(
        self, request: JobRequest, vector: Vector, said: Sequence[TargetPrediction], only: Container[str] = ALL
    ) -> tuple[TargetPrediction, ...]:
        """Return the targets with their reasons, at least those of `only`: each costs one more call of its model."""
        view = VectorView.of(request, _NAMES, vector)
        return tuple(self._with_reasons(target, view, vector) if target.target in only else target for target in said)

    def changes(
        self, request: JobRequest, said: Sequence[TargetPrediction], only: Container[str] | None = None
    ) -> tuple[RequestChange, ...]:
        """Return the smaller requests that help, each on its own, of the kinds `only` (files of predict/changes)."""
        return changes.changes(request, said, self._again, only)

    def _own(self, target: str, request: JobRequest) -> TargetPrediction | None:
        """Return the prediction of a target from the user's own runs, where it is better than counts."""
        return gpus_needed(self._recall, request) if self._recall is not None and target == "gpus_needed" else None

    def _again(self, requests: Sequence[JobRequest]) -> list[tuple[TargetPrediction, ...]]:
        """Return the targets of other requests of the same user, without reasons."""
        return self._all_targets(requests, self.vectors(requests))

    def _all_targets(self, requests: Sequence[JobRequest], vectors: Vector) -> list[tuple[TargetPrediction, ...]]:
        raw = self.raws(vectors, ALL)
        return [
            self.scored(request, vectors[place], ALL, {name: rows[place] for name, rows in raw.items()})
            for place, request in enumerate(requests)
        ]

    def _raw(self, target: str, vectors: Vector) -> Vector:
        assert self._bundle is not None  # noqa: S101 asked only for targets of a bundle
        return self._bundle.raw(target, vectors)

    def _from_model(self, model: TargetModel, raw: Vector, request: JobRequest, *, busy: bool) -> TargetPrediction:
        if BY_NAME[model.target].kind == "probability":
            p = self._rolling.probability(model.target, float(raw[0]))
            return TargetPrediction(model.target, self._source, model.rows, p, level(model, p))
        values = self._rolling.quantiles(model.target, raw.tolist(), cap(model.target, request), busy=busy)
        quantiles = dict(zip(self._levels[model.target], values, strict=True))
        return TargetPrediction(model.target, self._source, model.rows, quantiles=quantiles)

    def _with_reasons(self, said: TargetPrediction, view: VectorView, vector: Vector) -> TargetPrediction:
        """Add the reasons of a model's prediction; an effect on a quantile is in its unit, at the median."""
        model = self._models.get(said.target)
        if model is None or self._bundle is None:
            return said
        references = self._bundle.manifest.references
        if said.p is not None:
            return replace(said, reasons=reasons(view, vector, references, self._probability(model), _LEAST_P))
        place = min(range(len(model.quantiles)), key=lambda i: abs(model.quantiles[i] - 0.5))
        middle = said.quantiles[f"{model.quantiles[place]:g}"]

        def logarithm(rows: Vector) -> NDArray[np.float64]:
            return self._raw(model.target, rows)[:, place].astype(np.float64)

        found = reasons(view, vector, references, logarithm, _LEAST_LOG)
        return replace(said, reasons=tuple(replace(r, effect=middle * (1 - math.exp(-r.effect))) for r in found))

    def _probability(self, model: TargetModel) -> Callable[[Vector], NDArray[np.float64]]:
        def score(rows: Vector) -> NDArray[np.float64]:
            raw = self._raw(model.target, rows)[:, 0]
            return np.array([self._rolling.probability(model.target, float(x)) for x in raw])

        return score

    def _notes(self, view: VectorView) -> tuple[str, ...]:
        notes = []
        if self._bundle is None or self._bundle.manifest.origin != "site":
            notes.append(NO_MODEL)
        else:
            left_out = sorted(self._bundle.manifest.left_out.items())
            notes += [f"no model of {name}: {why}" for name, why in left_out if applies(name, view.request)]
        if not _has_history(view):
            notes.append(NO_HISTORY)
        return tuple(notes)


def _has_history(view: VectorView) -> bool:
    return bool(view.get(f"user_{ENDED}"))


def level(model: TargetModel, p: float) -> str:
    """Return the highest operating point that a probability reaches, "" for none."""
    reached = [(threshold, name) for name, threshold in model.thresholds.items() if p >= threshold]
    return max(reached)[1] if reached else ""
