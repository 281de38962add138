"""Which measurements of a site correct the public model on a GPU type."""

from gpuwaste.estimate.public.site_shift import Factors, factors_for
from gpuwaste.slurm.gpu_types import device

A100: Factors = {"products": 1.44, "moved": 0.81}
L4: Factors = {"products": 1.21}


def test_a_measured_type_has_its_own_factors() -> None:
    """As they are, whatever else was measured."""
    assert factors_for(device("l4"), {"a100-40gb": A100, "l4": L4}) == (L4, "l4")


def test_a_type_of_a_measured_family_takes_all_of_it() -> None:
    """A30 is Ampere as the A100 is; of two of a family the one with the nearer bandwidth."""
    assert factors_for(device("a30"), {"a100-40gb": A100, "l4": L4}) == (A100, "a100-40gb")
    near: Factors = {"moved": 2.0}
    assert factors_for(device("a40"), {"a100-40gb": A100, "a10": near}) == (near, "a10")


def test_a_type_of_another_family_takes_nothing() -> None:
    """H100 and T4 are of other families than A100 and L4."""
    for gpu in ("h100", "t4"):
        assert factors_for(device(gpu), {"a100-40gb": A100, "l4": L4}) == ({}, "")


def test_where_nothing_is_measured_there_is_no_factor() -> None:
    """No measured type, types that the table does not have, types without factors."""
    cases: tuple[dict[str, Factors], ...] = ({}, {"abacus": A100}, {"a100-40gb": {}})
    for measured in cases:
        assert factors_for(device("h100"), measured) == ({}, "")


def test_a_bundle_may_name_a_type_by_an_alias() -> None:
    """A name that has become an alias of the table since the calibration is that type."""
    assert factors_for(device("h200"), {"h100-sxm": L4}) == (L4, "h100-sxm")
