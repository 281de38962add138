"""Builds the document of `gpuwaste model status`: how good a bundle is on jobs submitted after its training."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.bundle import Bundle
from gpuwaste.advice.predict.drift import (
    COVERAGE_LIMIT,
    ECE_LIMIT,
    MIN_JOBS,
    MUCH,
    RECENT,
    SOME,
    coverage,
    ece,
    feature_drift,
)
from gpuwaste.advice.predict.manifest import TargetModel
from gpuwaste.advice.predict.rolling import busy_users, roll, static
from gpuwaste.advice.predict.targets import labels
from gpuwaste.advice.renewal.model_types import ModelStatus, QuantileCoverage, TargetStatus
from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.job_table import ABSENT, JobTable

_LEAD: Final = 2 * RECENT  # ended jobs that warm up the rolling correction before it is judged


def status_document(bundle: Bundle, table: JobTable, vectors: NDArray[np.float32]) -> ModelStatus:
    """Return drift of the features, and calibration and coverage over the last RECENT ended jobs of each target.

    `vectors` float32 [n, F] are the table's rows as they were at submission. Only jobs submitted after the training
    window are used, and GPUs are judged by the bundle's own rule. Raises NoDataError if there are none.
    """
    table = table.by_rule(bundle.manifest.under_use)
    after = np.flatnonzero(table.submit > bundle.manifest.window[1])
    if not len(after):
        raise NoDataError(f"{bundle.directory.name}: no job was submitted after those in its training: try again later")
    latest = after[-RECENT:]
    return ModelStatus(
        name=bundle.manifest.name,
        hash=bundle.hash,
        origin=bundle.manifest.origin,
        jobs=len(latest),
        first_utc=int(table.submit[latest[0]]),
        last_utc=int(table.submit[latest[-1]]),
        psi_some=SOME,
        psi_much=MUCH,
        min_jobs=MIN_JOBS,
        features=feature_drift(bundle.manifest, vectors[latest]),
        targets=[_target(bundle, model, table, vectors, after) for model in bundle.manifest.targets],
    )


def drifted(document: ModelStatus) -> list[str]:
    """Return the names of features and targets that have drifted much or perform badly."""
    features = [row.feature for row in document.features if row.level == "much"]
    return features + [row.target for row in document.targets if row.bad]


def _target(
    bundle: Bundle, model: TargetModel, table: JobTable, vectors: NDArray[np.float32], after: NDArray[np.intp]
) -> TargetStatus:
    """Return one target's figures, of the bundle as it is and with the rolling correction that users see."""
    y = labels(model.target, table)
    known = after[np.isfinite(y[after]) & (table.end[after] != ABSENT)]
    known = known[np.argsort(table.end[known], kind="stable")][-_LEAD:]
    part = table.take(np.sort(known))
    rows = np.ascontiguousarray(vectors[np.sort(known)])
    raw, busy = bundle.raw(model.target, rows), busy_users(rows, bundle.manifest.features)
    judged = np.argsort(part.end, kind="stable")[-RECENT:]
    seen = labels(model.target, part)[judged]
    as_is, rolled = static(model, part, raw)[judged], roll(part, model, raw, busy=busy).values[judged]
    judge = _quantiles if model.quantiles else _probability
    return judge(model, seen, as_is, rolled)


def _probability(
    model: TargetModel, y: NDArray[np.float64], as_is: NDArray[np.float64], rolled: NDArray[np.float64]
) -> TargetStatus:
    errors = [_rounded(ece(p, y)) for p in (as_is, rolled)]
    bad = len(y) >= MIN_JOBS and errors[1] is not None and errors[1] > ECE_LIMIT
    rate = _rounded(float(y.mean())) if len(y) else None
    return TargetStatus(
        target=model.target,
        jobs=len(y),
        bad=bool(bad),
        kind="probability",
        rate=rate,
        learnt_rate=model.base_rate,
        limit=ECE_LIMIT,
        ece_as_is=errors[0],
        ece_rolled=errors[1],
    )


def _quantiles(
    model: TargetModel, y: NDArray[np.float64], as_is: NDArray[np.float64], rolled: NDArray[np.float64]
) -> TargetStatus:
    below = [coverage(values, y) for values in (as_is, rolled)]
    rows = [
        QuantileCoverage(quantile=q, as_is=_rounded(a), rolled=_rounded(r))
        for q, a, r in zip(model.quantiles, *below, strict=True)
    ]
    # If many jobs end at their limit, more than a share of q stays below: only too few break the guarantee.
    short = any(q - r > COVERAGE_LIMIT for q, r in zip(model.quantiles, below[1], strict=True))
    bad = len(y) >= MIN_JOBS and short
    return TargetStatus(
        target=model.target, jobs=len(y), bad=bool(bad), kind="quantiles", coverage=rows, limit=COVERAGE_LIMIT
    )


def _rounded(value: float) -> float | None:
    return round(value, 4) if np.isfinite(value) else None
