"""The table of GPU types."""

import pytest

from gpuwaste.core.errors import UsageError
from gpuwaste.slurm.gpu_types import GIB, device, devices, find, mig_memory_b, sources, types_of


def test_every_number_has_a_source() -> None:
    """Memory, bandwidth, arithmetic, power and processors of each type name a source; MIG sizes and rates too."""
    known = sources()
    for each in devices():
        asked = {"memory", "bandwidth", "tflops", "board", "processors"}
        asked |= {name for name, there in (("mig", each.mig), ("reaches", each.reaches)) if there}
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
    ("name", "types"),
    [
        ("a100", ["a100-40gb", "a100-pcie-40gb", "a100-80gb", "a100-pcie-80gb"]),
        ("V100", ["v100-16gb", "v100-32gb", "v100-pcie-16gb", "v100-pcie-32gb"]),
    ],
)
def test_a_name_of_several_types_is_none_of_them(name: str, types: list[str]) -> None:
    """a100 is sold with 40 and 80 GB, on two boards: no type is taken for it, and the question names all."""
    assert find(name) is None
    assert [each.name for each in types_of(name)] == types
    with pytest.raises(UsageError, match=f"{name}' is {' or '.join(types)}: give one of them"):
        device(name)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Tesla P100-PCIE-16GB", "p100-pcie"),
        ("Tesla P100-SXM2-16GB", "p100"),
        ("Tesla V100-PCIE-16GB", "v100-pcie-16gb"),
        ("Tesla V100-PCIE-32GB", "v100-pcie-32gb"),
        ("Tesla V100-SXM2-32GB", "v100-32gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("Tesla P4", "p4"),
        ("AMD Instinct MI210", "mi210"),
    ],
)
def test_names_of_drivers_tell_boards_apart(name: str, found: str) -> None:
    """NVML's name of a PCIe board is that type, not the one on the faster board."""
    assert device(name).name == found


def test_boards_of_one_chip_differ_by_power() -> None:
    """The PCIe board of a type has its chip and memory, and less power."""
    for board, other in (("a100-pcie-40gb", "a100-40gb"), ("v100-pcie-32gb", "v100-32gb"), ("p100-pcie", "p100")):
        one, two = device(board), device(other)
        assert (one.family, one.memory_gib, one.processors) == (two.family, two.memory_gib, two.processors)
        assert one.board_w < two.board_w


def test_rates_that_users_have_published_are_of_types_in_the_sheet() -> None:
    """Each element type of `reaches` has a peak in the table, and no rate is a small fraction of it."""
    for each in devices():
        assert set(each.reaches) <= set(each.tflops), each.name
        assert all(rate > 0.3 * each.tflops[dtype] for dtype, rate in each.reaches.items()), each.name


def test_a_name_in_slurm_may_be_a_variant() -> None:
    """h100 is the table's name of one type, and a site may give it to the others; t4 is one type."""
    assert device("h100").name == "h100"
    assert [each.name for each in types_of("h100")] == ["h100", "h100-pcie", "h100-nvl"]
    assert device("p100").name == "p100"
    assert [each.name for each in types_of("p100")] == ["p100", "p100-pcie"]
    assert [each.name for each in types_of("t4")] == ["t4"]
    assert types_of("h900") == []


def test_an_unknown_type_is_refused() -> None:
    """The error lists the types that are known."""
    assert find("h900") is None
    with pytest.raises(UsageError, match=r"unknown GPU type; known: p100, p100-pcie, p4.*b200, mi100"):
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
