"""A site's factors of the public model's parts, from programs that it has measured, and the errors with them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from gpuwaste.estimate.public.coefficients import Part
from gpuwaste.estimate.time_card import PublicFigures, TimeFigures
from gpuwaste.estimate.time_model import TimeModel
from gpuwaste.models.time_errors import case_of
from gpuwaste.models.time_fit import Measurements

Floats = NDArray[np.float64]
PARTS: Final[tuple[Part, ...]] = ("products", "convolutions", "moved", "launches")
LEAST: Final = 10
"""Programs below which no factor is fitted."""
FACTOR_SD: Final = 0.4  # of the logarithm of a factor around 1
ERROR_SD: Final = 0.1  # of the logarithm of a measured over a computed time
FOLDS: Final = 5
MOST: Final = 5.0
"""The largest factor, and one over the smallest."""


def fit_factors(parts: Sequence[Mapping[Part, float]], seconds: Floats) -> dict[Part, float]:
    """Return the factor of each part that the programs have; none from too few programs."""
    if len(parts) < LEAST:
        return {}
    work = _table(parts)
    there = work.sum(axis=0) > 0

    def errors(logs: Floats) -> Floats:
        predicted = np.maximum((work * np.exp(logs)).sum(axis=1), 1e-12)
        found: Floats = np.r_[np.log(predicted / seconds) / ERROR_SD, logs / FACTOR_SD]
        return found

    bound = np.log(MOST)
    found = least_squares(errors, np.zeros(len(PARTS)), bounds=(-bound, bound), loss="soft_l1").x
    return {part: float(np.exp(log)) for part, log, used in zip(PARTS, found, there, strict=True) if used}


def error_with(factors: Mapping[Part, float], parts: Sequence[Mapping[Part, float]], seconds: Floats) -> float:
    """Return the mean absolute relative error with the factors."""
    predicted = _table(parts) @ np.array([factors.get(part, 1.0) for part in PARTS])
    return float(np.mean(np.abs(predicted / seconds - 1)))


def error_left_out(parts: Sequence[Mapping[Part, float]], seconds: Floats, families: Sequence[str]) -> float | None:
    """Return the mean error on families of programs that the factors were fitted without; None for too few."""
    names = sorted(set(families))
    if len(parts) < LEAST or len(names) < 2:  # noqa: PLR2004 one to leave out and one to learn from
        return None
    found = []
    for group in np.array_split(np.array(names, dtype=object), min(FOLDS, len(names))):
        out = np.isin(np.array(families, dtype=object), group)
        learnt = [part for part, left in zip(parts, out, strict=True) if not left]
        asked = [part for part, left in zip(parts, out, strict=True) if left]
        factors = fit_factors(learnt, seconds[~out])
        found.append((error_with(factors, asked, seconds[out]), len(asked)))
    return sum(error * count for error, count in found) / len(parts)


def public_figures(parts: Sequence[Mapping[Part, float]], rows: Measurements) -> PublicFigures | None:
    """Return the errors of the public model on a type's programs; None where it has no time for them."""
    asked = [place for place, each in enumerate(parts) if sum(each.values()) > 0]
    if not asked:
        return None
    part = rows.take(asked)
    known = [parts[place] for place in asked]
    return PublicFigures(
        programs=len(asked),
        mape=error_with({}, known, part.seconds),
        corrected_mape=error_left_out(known, part.seconds, part.families),
        factors=fit_factors(known, part.seconds),
    )


def with_public(model: TimeModel, public: PublicFigures | None, figures: Sequence[TimeFigures]) -> TimeModel:
    """Return a model with the errors by which one of the two answers: both on families that were left out."""
    own = next((each.mape for each in figures if each.case == case_of(0.0)), None)
    error, factors = (None, {}) if public is None else (public.corrected_mape, public.factors)
    return replace(
        model, grounds=replace(model.grounds, own_error=own, public_error=error, public_factors=dict(factors))
    )


def _table(parts: Sequence[Mapping[Part, float]]) -> Floats:
    return np.array([[each.get(part, 0.0) for part in PARTS] for each in parts])
