"""From vectors and labels to a fitted target: trees, calibration, operating points, first conformal shifts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from gpuwaste.advice.predict.manifest import PlattScaling, TargetModel
from gpuwaste.advice.predict.targets import Target, labels
from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.table import JobTable
from gpuwaste.models.operating import operating_points
from gpuwaste.models.recipe import DEFAULTS, Recipe
from gpuwaste.models.split import Rows

Vectors = NDArray[np.float32]
MIN_OF_A_CLASS: Final = 20  # rows of either class, or labelled rows of a quantile, below which nothing is learnt
_BINS: Final = 256  # XGBoost's own default
_EPS: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Fitted:
    """One target, learnt: a booster for a probability, one for each quantile otherwise.

    `model` is what a manifest says of it; its file is named by the export. Its calibration, thresholds and shifts come
    from validation rows alone.
    """

    target: Target
    boosters: tuple[xgboost.Booster, ...]
    model: TargetModel

    def raw(self, vectors: Vectors) -> NDArray[np.float32]:
        """Return [n, 1] probabilities before calibration, or [n, q] log quantiles before their shifts."""
        return np.column_stack([b.inplace_predict(vectors) for b in self.boosters]).astype(np.float32)


def fit(
    target: Target,
    table: JobTable,
    vectors: Vectors,
    learn: Rows,
    validate: Rows,
    *,
    recipe: Recipe | None = None,
    seed: int = 1,
    threads: int = 2,
) -> Fitted:
    """Learn one target from the rows `learn`. Raises NoDataError, whose words go into the card, where it cannot."""
    chosen = recipe or DEFAULTS[target.kind]
    y = learnable(target, table)
    learn, validate = learn[np.isfinite(y[learn])][-chosen.max_rows :], validate[np.isfinite(y[validate])]
    check_labels(target, y[learn])
    params = {**chosen.on(len(learn)), "seed": seed, "nthread": threads, "tree_method": "hist"}
    data = columns(vectors[learn], y[learn], params)
    boosters = tuple(grow(data, {**params, **objective}, chosen.rounds) for objective in objectives(target))
    fitted = Fitted(target, boosters, TargetModel(target.name, "", target.quantiles, rows=len(learn)))
    raw = fitted.raw(vectors[validate]) if len(validate) else np.empty((0, len(boosters)), np.float32)
    if target.kind == "quantiles":
        gaps = y[validate, None] - raw
        shifts = tuple(conformal(gaps[:, i], q) for i, q in enumerate(target.quantiles))
        return replace(fitted, model=replace(fitted.model, shifts=shifts))
    scale = platt(raw[:, 0], y[validate])
    points = operating_points(y[validate].astype(np.float64), calibrated(raw[:, 0], scale))
    known = replace(fitted.model, calibration=scale, thresholds=points, base_rate=float(y[learn].mean()))
    return replace(fitted, model=known)


def learnable(target: Target, table: JobTable) -> NDArray[np.float32]:
    """Return what trees learn: 0 and 1, or natural logarithms of the labels."""
    y = labels(target.name, table).astype(np.float32)
    if target.kind == "probability":
        return y
    floor = 0.5 if target.name == "gpus_needed" else 1.0  # log needs a positive number; half a GPU stands for none
    return np.log(np.maximum(y, floor)).astype(np.float32)


def objectives(target: Target) -> list[dict[str, Any]]:
    """Return XGBoost's objective for each booster of a target."""
    if target.kind == "probability":
        return [{"objective": "binary:logistic"}]
    return [{"objective": "reg:quantileerror", "quantile_alpha": q} for q in target.quantiles]


def columns(vectors: Vectors, y: NDArray[np.float32], params: Mapping[str, Any]) -> xgboost.QuantileDMatrix:
    """Return numeric float32 columns in bins, NaN for missing: made once for all boosters of a target."""
    bins = int(params.get("max_bin", _BINS))
    return xgboost.QuantileDMatrix(vectors, label=y, nthread=int(params.get("nthread", 1)), max_bin=bins)


def grow(data: xgboost.QuantileDMatrix, params: Mapping[str, Any], rounds: int) -> xgboost.Booster:
    """Train one booster."""
    return xgboost.train(dict(params), data, num_boost_round=rounds)


def platt(raw: NDArray[np.float32], y: NDArray[np.float32]) -> PlattScaling:
    """Fit Platt's scaling on the logit; the identity where a class is missing."""
    if len(y) < MIN_OF_A_CLASS or not 0 < y.mean() < 1:
        return PlattScaling()
    model = LogisticRegression(C=1e6).fit(logit(raw)[:, None], y)
    return PlattScaling(float(model.coef_[0, 0]), float(model.intercept_[0]))


def calibrated(raw: NDArray[np.floating], scale: PlattScaling) -> NDArray[np.float64]:
    """Apply a calibration to raw probabilities."""
    return 1.0 / (1.0 + np.exp(-(scale.slope * logit(raw) + scale.offset)))


def logit(p: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return log(p / (1 - p)), bounded."""
    bounded = np.clip(p.astype(np.float64), _EPS, 1 - _EPS)
    return np.log(bounded / (1 - bounded))


def lacking(target: Target, y: NDArray[np.float32]) -> str:
    """Return, in words for the card, why there is too little to learn from; "" where there is enough."""
    if target.kind == "quantiles":
        few = f"{len(y)} jobs with a known value: at least {MIN_OF_A_CLASS} are needed"
        return few if len(y) < MIN_OF_A_CLASS else ""
    positive = int(y.sum())
    few = f"{positive} of {len(y)} labelled jobs: at least {MIN_OF_A_CLASS} of each class are needed"
    return few if min(positive, len(y) - positive) < MIN_OF_A_CLASS else ""


def check_labels(target: Target, y: NDArray[np.float32]) -> None:
    """Raise NoDataError where there is too little to learn from."""
    if few := lacking(target, y):
        raise NoDataError(few)


def conformal(values: NDArray[np.floating], q: float) -> float:
    """Return the conformal quantile: the ceil((n + 1) q)-th smallest; 0 without values."""
    n = len(values)
    return float(np.sort(values)[min(n, int(np.ceil((n + 1) * q))) - 1]) if n else 0.0
