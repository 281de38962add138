"""Whether current jobs are still like those that a bundle learned from: features, calibration, coverage. Arrays in.

The population stability index of a feature is sum((now - then) * ln(now / then)) over the shares of its bins, with
unknown values in a bin of their own; below 0.1 counts as stable, above 0.25 as another population (Siddiqi 2006). With
few jobs chance gives about bins / jobs: that amount is reported too and does not count as drift.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from gpuwaste.advice.predict.conformal_shifts import ROUNDING
from gpuwaste.advice.predict.manifest import Manifest

SOME: Final = 0.1
MUCH: Final = 0.25
BINS: Final = 10
MIN_JOBS: Final = 200  # with fewer jobs the share of a bin is not reliable
RECENT: Final = 2000  # ended jobs used for calibration and coverage
ECE_LIMIT: Final = 0.05  # a calibration counts as lost above this mean gap between predicted and observed
COVERAGE_LIMIT: Final = 0.03  # the same for a quantile's share of jobs below it
_ECE_BINS: Final = 15  # of equal widths (Guo et al. 2017)
_FLOOR: Final = 1e-4  # an empty bin counts as this share: the logarithm of 0 is infinite
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FeatureDrift:
    """One feature's index, and the mean index by chance with as many jobs; `level` is "", some or much."""

    feature: str
    psi: Annotated[float, Meta(description="The population stability index.")]
    chance: Annotated[float, Meta(description="The index that is expected by chance with as many jobs.")]
    level: str


def bins(vectors: Vectors) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
    """Return `drift_bins` and `drift_shares` of a manifest from the training rows, float32 [n, F]."""
    edges = tuple(_edges(column) for column in vectors.T)
    shares = tuple(tuple(_shares(c, e).tolist()) for c, e in zip(vectors.T, edges, strict=True))
    return edges, shares


def references(vectors: Vectors) -> tuple[float | None, ...]:
    """Return each feature's median over the rows where it is known, None where it never is."""
    known = (column[np.isfinite(column)] for column in vectors.T)
    return tuple(float(np.median(column)) if len(column) else None for column in known)


def feature_drift(manifest: Manifest, vectors: Vectors) -> list[FeatureDrift]:
    """Return every feature's drift, the largest first; empty for a bundle without bins or for no rows."""
    if not len(vectors) or not manifest.drift_bins:
        return []
    rows = zip(manifest.features, manifest.drift_bins, manifest.drift_shares, vectors.T, strict=True)
    found = [_drift(name, edges, then, column) for name, edges, then, column in rows]
    return sorted(found, key=lambda drift: -drift.psi)


def level_of(psi: float) -> str:
    """Return "", "some" or "much" by the two thresholds."""
    return "much" if psi >= MUCH else "some" if psi >= SOME else ""


def ece(p: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return the expected calibration error over bins of equal width; NaN without rows."""
    if not len(p):
        return float("nan")
    number = np.minimum((p * _ECE_BINS).astype(np.intp), _ECE_BINS - 1)
    return float(np.abs(np.bincount(number, p - y, minlength=_ECE_BINS)).sum() / len(p))


def coverage(values: NDArray[np.float64], y: NDArray[np.float64]) -> list[float]:
    """Return the share of jobs that stayed at or below each quantile [n, q]; `y` are the labels of the runs."""
    return [1 - float(short(column, y).mean()) if len(y) else float("nan") for column in values.T]


def short(limits: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which limits were too short for the run time."""
    return limits < y * (1 - ROUNDING)


def _drift(name: str, edges: Sequence[float], then: Sequence[float], column: Vectors) -> FeatureDrift:
    now = _shares(column, edges)
    before = np.maximum(np.asarray(then, dtype=np.float64), _FLOOR)
    after = np.maximum(now, _FLOOR)
    psi = float(((after - before) * np.log(after / before)).sum())
    chance = float(np.count_nonzero(np.asarray(then) > 0) - 1) / len(column)
    enough = len(column) >= MIN_JOBS
    return FeatureDrift(name, psi, chance, level_of(psi - chance) if enough else "")


def _edges(column: Vectors) -> tuple[float, ...]:
    """Return inner edges at tenths of the known values; fewer where values repeat."""
    known = column[np.isfinite(column)].astype(np.float64)
    if not len(known):
        return ()
    inner = np.unique(np.quantile(known, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    return tuple(inner.tolist())


def _shares(column: Vectors, edges: Sequence[float]) -> NDArray[np.float64]:
    """Return the share of each bin (edge i belongs to the bin above), unknown values last."""
    known = column[np.isfinite(column)].astype(np.float64)
    counts = np.bincount(np.searchsorted(np.asarray(edges), known, side="right"), minlength=len(edges) + 1)
    return np.append(counts, len(column) - len(known)) / max(len(column), 1)
