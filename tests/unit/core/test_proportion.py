"""The interval of a counted share, beside published values."""

import pytest

from gpuwaste.core.proportion import wilson


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_score_interval_is_that_of_newcombe(hits: int, of: int, low: float, high: float) -> None:
    """Newcombe 1998, table I, method 3: four of its examples."""
    found = wilson(hits, of)
    assert found is not None
    assert found[0] == pytest.approx(low, abs=5e-5)
    assert found[1] == pytest.approx(high, abs=5e-5)


def test_ends_are_shares_and_nothing_counted_has_none() -> None:
    """All right: the upper end is 1, exactly; without a count there is no interval."""
    assert wilson(0, 0) is None
    assert (wilson(20, 20) or (0, 0))[1] == 1.0
