"""A site's factors of the public model's parts: planted ones are found, and they improve a neighbour."""

from collections.abc import Mapping
from functools import cache
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.estimate.planted_times import planted

from gpuwaste.estimate.public.coefficients import Part
from gpuwaste.estimate.public.site_shift import factors_for
from gpuwaste.estimate.time_card import PublicFigures, TimeFigures
from gpuwaste.models.public_times.site_fit import (
    LEAST,
    error_left_out,
    error_with,
    fit_factors,
    public_figures,
    with_public,
)
from gpuwaste.models.time_errors import case_of
from gpuwaste.models.time_fit import Measurements, fit_model
from gpuwaste.slurm.gpu_types import device

TRUE: Final[Mapping[Part, float]] = {"products": 1.4, "moved": 0.8, "launches": 1.0}
FAMILIES: Final = ("mlp", "cnn", "transformer", "mixer")


def programs(count: int, seed: int = 1) -> tuple[list[dict[Part, float]], NDArray[np.float64]]:
    """Return the public seconds of programs by part, and what the planted site measures, with 2 % noise."""
    rng = np.random.default_rng(seed)
    parts: list[dict[Part, float]] = []
    for _ in range(count):
        products, moved, launches = np.exp(rng.uniform(-7, -2)) * rng.dirichlet((1.0, 1.0, 0.2))
        parts.append({"products": float(products), "moved": float(moved), "launches": float(launches)})
    seconds = np.array([sum(TRUE[part] * each for part, each in one.items()) for one in parts])
    return parts, seconds * np.exp(rng.normal(0, 0.02, count))


def test_planted_factors_are_found() -> None:
    """Within 5 %, from 200 programs; a part that no program has gets none."""
    found = fit_factors(*programs(200))
    assert found["products"] == pytest.approx(1.4, rel=0.05)
    assert found["moved"] == pytest.approx(0.8, rel=0.05)
    assert set(found) == set(TRUE)


def test_few_programs_say_something_of_what_carries_their_time() -> None:
    """Ten programs find the large parts within 10 %; of a part with a ten thousandth of the time nothing follows."""
    parts, seconds = programs(LEAST)
    found = fit_factors(
        [{**each, "convolutions": 1e-4 * second} for each, second in zip(parts, seconds, strict=True)], seconds
    )
    assert found["products"] == pytest.approx(1.4, rel=0.1)
    assert found["moved"] == pytest.approx(0.8, rel=0.1)
    assert found["convolutions"] == pytest.approx(1.0, abs=0.05)


def test_a_disturbed_program_moves_them_little() -> None:
    """One of 60 programs took ten times as long."""
    parts, seconds = programs(60)
    seconds[7] *= 10
    found = fit_factors(parts, seconds)
    assert found["products"] == pytest.approx(1.4, rel=0.1)
    assert found["moved"] == pytest.approx(0.8, rel=0.1)


def test_too_few_programs_have_no_factor() -> None:
    """Nine are too few, ten are enough; without another family nothing can be left out."""
    assert fit_factors(*programs(LEAST - 1)) == {}
    assert fit_factors(*programs(LEAST))
    parts, seconds = programs(40)
    assert error_left_out(parts, seconds, ["mlp"] * 40) is None
    assert error_left_out(parts[:9], seconds[:9], (*FAMILIES, *FAMILIES, "mlp")) is None


def test_the_error_falls_on_families_that_were_left_out() -> None:
    """By the site's factors, from about 30 % to the noise."""
    parts, seconds = programs(80)
    plain, left_out = error_with({}, parts, seconds), error_left_out(parts, seconds, FAMILIES * 20)
    assert left_out is not None
    assert left_out < 0.05
    assert plain > 0.1


def test_one_calibrated_type_improves_its_neighbours() -> None:
    """What the A100 was off by, the A40 is off by less with its factors; the H100, of another family, is as before."""
    measured: dict[str, Mapping[Part, float]] = {"a100-40gb": fit_factors(*programs(80))}
    parts, seconds = programs(80, seed=2)
    plain = error_with({}, parts, seconds)
    family, other = (error_with(factors_for(device(gpu), measured)[0], parts, seconds) for gpu in ("a40", "h100"))
    assert family < 0.05 < other == plain


@cache
def rows() -> Measurements:
    """Return 60 measured programs."""
    return planted(60)


def test_figures_of_a_type() -> None:
    """Errors before and after; programs without a public time are not counted, and without any there are none."""
    parts, seconds = programs(60)
    measured = Measurements(rows().sums, rows().families, seconds, rows().own)
    found = public_figures(parts, measured)
    assert found is not None
    assert found.programs == 60
    assert found.corrected_mape is not None
    assert found.corrected_mape < 0.05 < found.mape
    assert found.factors["products"] == pytest.approx(1.4, rel=0.06)
    some = public_figures([{}, *parts[1:]], measured)
    assert some is not None
    assert some.programs == 59
    assert public_figures([{}] * 60, measured) is None


def test_a_model_gets_the_errors_by_which_one_answers() -> None:
    """Own error on families left out, the public one with the factors; neither where nothing was judged."""
    model = fit_model("rtx3090", rows())
    public = PublicFigures(programs=60, mape=0.3, corrected_mape=0.04, factors={"moved": 0.8})
    grounds = with_public(model, public, [_figures("seen", 0.01), _figures(case_of(0.0), 0.07)]).grounds
    assert (grounds.own_error, grounds.public_error, grounds.public_factors) == (0.07, 0.04, {"moved": 0.8})
    plain = with_public(model, None, []).grounds
    assert (plain.own_error, plain.public_error, plain.public_factors) == (None, None, {})


def _figures(case: str, mape: float) -> TimeFigures:
    return TimeFigures(case=case, programs=60, additive_mape=mape, mape=mape, median=mape, p90=mape, coverage=0.9)
