"""The table of GPU types."""

import pytest

from gpuwaste.core.errors import UsageError
from gpuwaste.slurm.gpu_types import GIB, device, devices, find, mig_memory_b, sources, types_of


def test_every_number_has_a_source() -> None:
    """Memory, bandwidth and arithmetic of each type name a source of the table; MIG sizes too."""
    known = sources()
    for each in devices():
        asked = {"memory", "bandwidth", "tflops", *(["mig"] if each.mig else [])}
        assert asked == set(each.sources), each.name
        assert set(each.sources.values()) <= set(known), each.name
        assert "f32" in each.tflops, each.name


def test_names_are_unique() -> None:
    """No two types share a name or an alias."""
    names = [name for each in devices() for name in (each.name, *each.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["h100", "H100", "NVIDIA H100 80GB HBM3", "nvidia_h100_80gb_hbm3"])
def test_one_type_has_several_names(name: str) -> None:
    """The table's name, a gres type and NVML's name lead to the same type."""
    assert device(name).name == "h100"


@pytest.mark.parametrize(
    ("name", "types"), [("a100", ["a100-40gb", "a100-80gb"]), ("V100", ["v100-16gb", "v100-32gb"])]
)
def test_a_name_of_two_types_is_none_of_them(name: str, types: list[str]) -> None:
    """a100 is sold with 40 and with 80 GB: no type is taken for it, and the question names both."""
    assert find(name) is None
    assert [each.name for each in types_of(name)] == types
    with pytest.raises(UsageError, match=f"{name}' is {types[0]} or {types[1]}: give one of them"):
        device(name)


def test_a_name_in_slurm_may_be_a_variant() -> None:
    """h100 is the table's name of one type, and a site may give it to the others; t4 is one type."""
    assert device("h100").name == "h100"
    assert [each.name for each in types_of("h100")] == ["h100", "h100-pcie", "h100-nvl"]
    assert [each.name for each in types_of("t4")] == ["t4"]
    assert types_of("h900") == []


def test_an_unknown_type_is_refused() -> None:
    """The error lists the types that are known."""
    assert find("h900") is None
    with pytest.raises(UsageError, match=r"unknown GPU type; known: p100.*b200"):
        device("h900")


def test_an_element_type_without_units_runs_as_a_wider_one() -> None:
    """V100 has no bf16: it runs as f32; H100 has no f4: it runs as f8; T4 has next to no f64."""
    assert device("v100-16gb").peak_flops("bf16") == 15.7e12
    assert device("h100").peak_flops("f4") == 1979e12
    assert device("h100").peak_flops("bool") == 67e12
    assert device("t4").peak_flops("f64") == pytest.approx(8.1e12 / 64)


def test_a_mig_instance_has_what_the_listing_says_or_less_than_its_share() -> None:
    """A listed size is exact; an unlisted one is a little below its slices' share of the memory."""
    h100, h200 = device("h100"), device("h200")
    assert mig_memory_b(h100, h100.mig[0]) == int(9.62 * GIB)
    assert mig_memory_b(h200, h200.mig[0]) == int(h200.memory_b / 8 * 0.92)
    for each in devices():
        for size in each.mig:
            assert 0.85 < mig_memory_b(each, size) / (each.memory_b * size.memory / each.mig_slices) <= 1.0
