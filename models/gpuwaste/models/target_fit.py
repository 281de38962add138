"""From vectors and labels to a fitted target: trees by one recipe, calibration, operating points, first shifts.

A search may refine the recipe for a site. Operating points are the probabilities from which a site warns, or rejects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve

from gpuwaste.advice.predict.manifest import PlattScaling, TargetModel
from gpuwaste.advice.predict.targets import Target, labels
from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.models.training_rows import Rows

# Shallow trees with few columns each: history features are redundant, and a deep tree learns single users. Few trees,
# since each one is evaluated at each submission: more and slower ones ranked no better in folds by time.
_PROBABILITY: Final = {
    "learning_rate": 0.06,
    "max_depth": 5,
    "min_child_weight": 20.0,
    "subsample": 0.8,
    "colsample_bytree": 0.15,
    "reg_lambda": 5.0,
    "max_bin": 256,  # fewer are faster, but worse where failures are rare
}
_QUANTILES: Final = {
    "learning_rate": 0.1,
    "max_depth": 6,
    "min_child_weight": 20.0,
    "subsample": 0.7,
    "colsample_bytree": 0.3,
    "reg_lambda": 1.0,
    "max_bin": 128,
}
_ROWS_OF_A_WEIGHT: Final = 500
Vectors = NDArray[np.float32]
MIN_OF_A_CLASS: Final = 20  # with fewer rows of either class, or fewer labelled rows of a quantile, nothing is learnt
_BINS: Final = 256  # XGBoost's default
_EPS: Final = 1e-6
_REJECT_PRECISION: Final = 0.95
_MIN_SAID: Final = 20  # with fewer jobs above a threshold, its precision is not reliable
_BETA: Final = 2.0  # of the F-score for warnings: recall counts twice


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parameters of xgboost.train for one kind of target; `rounds` trees (for each quantile).

    The newest `max_rows` labelled jobs are learnt from: old ones help a classification and only cost time and memory,
    while run times change with the codes.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 150
    max_rows: int = 200_000

    def on(self, rows: int) -> dict[str, Any]:
        """Return the parameters for that many rows: in a short history a leaf may have fewer rows."""
        params = dict(self.params)
        if "min_child_weight" in params:
            params["min_child_weight"] = min(params["min_child_weight"], max(1.0, rows / _ROWS_OF_A_WEIGHT))
        return params


DEFAULTS: Final = MappingProxyType(
    {
        "probability": Recipe(MappingProxyType(_PROBABILITY), 150),
        "quantiles": Recipe(MappingProxyType(_QUANTILES), 100, 60_000),
    }
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted target: a booster for a probability, one for each quantile otherwise.

    `model` is its entry in the manifest; the export names its file. Its calibration, thresholds and shifts are from
    validation rows only.
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
    """Fit one target to the rows `learn`. Raises NoDataError where it cannot; the card has its message."""
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
    floor = 0.5 if target.name == "gpus_needed" else 1.0  # log needs a positive number; half a GPU means none
    return np.log(np.maximum(y, floor)).astype(np.float32)


def objectives(target: Target) -> list[dict[str, Any]]:
    """Return XGBoost's objective for each booster of a target."""
    if target.kind == "probability":
        return [{"objective": "binary:logistic"}]
    return [{"objective": "reg:quantileerror", "quantile_alpha": q} for q in target.quantiles]


def columns(vectors: Vectors, y: NDArray[np.float32], params: Mapping[str, Any]) -> xgboost.QuantileDMatrix:
    """Return numeric float32 columns in bins, NaN for missing; made once for all boosters of a target."""
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
    """Return a text for the card why there is too little to learn from; "" where there is enough."""
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


def operating_points(y: NDArray[np.float64], p: NDArray[np.float64]) -> dict[str, float]:
    """Return p by name from validation rows: f1 (best F1), warn (best F2), reject (precision of 0.95 or better).

    A point that validation does not support is left out.
    """
    if not len(y) or not 0 < y.mean() < 1:
        return {}
    precision, recall, at = precision_recall_curve(y, p)
    precision, recall = precision[:-1], recall[:-1]
    points = {"f1": _best(precision, recall, at, 1.0), "warn": _best(precision, recall, at, _BETA)}
    said = len(p) - np.searchsorted(np.sort(p), at)
    good = (precision >= _REJECT_PRECISION) & (said >= _MIN_SAID)
    if good.any():
        points["reject"] = float(at[good].min())
    return points


def _best(precision: NDArray[np.float64], recall: NDArray[np.float64], at: NDArray[np.float64], beta: float) -> float:
    score = (1 + beta**2) * precision * recall / np.maximum(beta**2 * precision + recall, 1e-12)
    return float(at[int(np.argmax(score))])
