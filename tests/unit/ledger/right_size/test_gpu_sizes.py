"""GPU types and MIG slices as sizes: which type a gres type is, and how fast one is compared with another."""

import pytest

from gpuwaste.ledger.right_size.gpu_sizes import GpuSize, size_of, slow_double, speed_of
from gpuwaste.slurm.gpu_types import GIB, device


def size(name: str, measured_gib: float | None = None) -> GpuSize:
    """Return the size of a gres type, whose memory agents have read."""
    found = size_of(name, None if measured_gib is None else int(measured_gib * GIB))
    assert found is not None
    return found


def test_boards_of_one_memory_are_one_size() -> None:
    """a100 with 80 GB: SXM4 and PCIe have the same chip and memory, so the size is known, and with 40 GB too."""
    large, small = size("a100", 79.15), size("a100", 39.39)
    assert (large.device.name, small.device.name) == ("a100-80gb", "a100-40gb")
    assert large.memory_b == device("a100-80gb").memory_b
    assert size("v100", 31.7).device.name == "v100-32gb"
    assert size("p100", 15.9).device.name == "p100"


def test_memory_that_agents_have_not_read_leaves_two_sizes() -> None:
    """a100 without a measured memory has 40 or 80 GB: none; p100 has 16 GB on either board."""
    assert size_of("a100", None) is None
    assert size_of("v100", None) is None
    assert size("p100").memory_b == device("p100").memory_b


def test_other_chips_of_one_name_are_no_one_size() -> None:
    """A memory that no type of the name has, or a name that is not in the table."""
    assert size_of("a100", 24 * GIB) is None
    assert size_of("abacus", 24 * GIB) is None
    assert size("h100", 79.1).device.name == "h100"
    assert size("h100", 92.1).device.name == "h100-nvl"


def test_a_size_offers_no_more_than_agents_have_read() -> None:
    """The smaller of the table's memory and the measured one."""
    assert size("t4", 14.0).memory_b == 14 * GIB
    assert size("t4", 15.0).memory_b == device("t4").memory_b


def test_speed_is_by_published_rates() -> None:
    """T4 and V100: f16 has the lowest ratio of what users published with 41.91 of 96.1, f32 4.17 of 14.22 is lower."""
    found = speed_of(size("t4"), size("v100", 15.8))
    assert found.compute == pytest.approx(4.17 / 14.22)
    assert found.bandwidth == pytest.approx(320 / 900)


def test_a_slice_has_its_part_of_the_speed() -> None:
    """3g.40gb: three sevenths of the arithmetic, half of the bandwidth."""
    whole, part = size("a100-80gb"), size("a100-80gb_3g.40gb")
    found = speed_of(part, whole)
    assert found.compute == pytest.approx(3 / 7)
    assert found.bandwidth == pytest.approx(0.5)
    assert part.part == 0.5


def test_double_precision_where_it_is_slow() -> None:
    """The L40S has a sixty-fourth of f32 in f64, the H100 as much as f32."""
    assert slow_double(size("l40s"), size("h100"))
    assert not slow_double(size("a100-40gb"), size("a100-80gb"))
