"""Times from public measurements: their basis and interval, and what they refuse."""

from math import log
from typing import Any, Final

import pytest

from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.program import Dtype, Op, Program, Source, fingerprint
from gpuwaste.estimate.public.coefficients import Part, shipped
from gpuwaste.estimate.public.operators import work_of
from gpuwaste.estimate.public.public_answer import DISPATCH_S, public_parts, public_time

SIDE: Final = 4096


def product(dtype: Dtype = "f32", trips: float = 1.0) -> Op:
    """Return a product of square matrices."""
    shapes = ((SIDE, SIDE),) * 3
    return Op(kind="mm", dtype=dtype, flops=2.0 * SIDE**3, bytes_read=12 * SIDE**2, shapes=shapes, trips=trips)


def program(*ops: Op, source: Source = "torch", **changes: Any) -> Program:
    """Return a program of these operations."""
    return Program(
        name="p", source=source, ops=list(ops), buffers=[], parameters_b=0, outputs_b=0,
        fingerprint=fingerprint(ops, []), **changes,
    )  # fmt: skip


def answer(of: Program, gpu: str, factors: dict[Part, float] | None = None, by: str = "") -> StepTime:
    """Return the time of a program."""
    return public_time(of, work_of(of), gpu, factors=factors, corrected_by=by)


def width(found: StepTime) -> float:
    """Return the half width of an interval in the logarithm of time."""
    assert found.step_s is not None
    assert found.high_s is not None
    return log(found.high_s / found.step_s)


F32: Final = program(product(trips=100))


def test_a_measured_gpu_has_a_narrower_interval() -> None:
    """The widths are those of the coefficients: a V100 was measured, an H100 was not, and the basis says so."""
    measured, other = answer(F32, "v100-pcie-32gb"), answer(F32, "h100")
    assert measured.step_s is not None
    assert other.step_s is not None
    assert measured.basis == "from public FP32 measurements on this GPU type and 7 others"
    assert other.basis == "from public FP32 measurements on 8 other GPUs; this GPU was not measured"
    assert width(measured) == pytest.approx(shipped().widths.measured)
    assert width(other) == pytest.approx(shipped().widths.unmeasured)
    assert measured.step_s > 100 * 2 * SIDE**3 / 14e12
    assert 100 * 2 * SIDE**3 / 67e12 < other.step_s < measured.step_s


def test_a_gpu_whose_steps_were_measured_is_no_unmeasured_one() -> None:
    """Every type with a factor of its own from measured steps says that it was measured."""
    for gpu in shipped().steps:
        assert "on this GPU type and 7 others" in answer(F32, gpu).basis, gpu


def test_a_measured_gpu_has_the_factor_of_its_steps() -> None:
    """The sum of the parts times measured over computed steps; without it where the site has factors."""
    parts = public_parts(F32, "p4")
    assert answer(F32, "p4").step_s == pytest.approx(sum(parts.values()) * shipped().steps["p4"])
    assert answer(F32, "p4", {"products": 1.0}, "p4").step_s == pytest.approx(sum(parts.values()))


def test_half_precision_is_less_certain() -> None:
    """f16 and bf16 are wider than f32 and training wider still; the basis names half precision."""
    f32 = answer(F32, "h100")
    for dtype in ("f16", "bf16"):
        half = answer(program(product(dtype, 100)), "h100")
        assert "public half-precision measurements on 2 other GPUs" in half.basis
        assert half.step_s is not None
        assert f32.step_s is not None
        assert half.step_s < f32.step_s / 5
        assert width(half) > width(f32)
    training = answer(program(product("bf16", 100), training=True), "h100")
    assert width(training) > width(half)


def test_a_training_step_in_half_precision_takes_its_factor() -> None:
    """Three forward passes by its operations, about four by measurements; f32 has no such factor."""
    half, f32 = program(product("bf16", 100), training=True), program(product(trips=100), training=True)
    once = answer(program(product("bf16", 100)), "h100").step_s
    assert once is not None
    assert answer(half, "h100").step_s == pytest.approx(once * shipped().half.training / 3)
    assert answer(f32, "h100").step_s == answer(F32, "h100").step_s


def test_a_site_s_factors_are_for_the_parts_of_the_same_time() -> None:
    """Factors of one on a training step in half precision: the sum of the parts that factors are fitted to."""
    half = program(product("bf16", 100), Op(kind="elem", dtype="bf16", bytes_read=1e9), training=True)
    parts = public_parts(half, "h100")
    assert answer(half, "h100", dict.fromkeys(parts, 1.0), "h100").step_s == pytest.approx(sum(parts.values()))


def test_xla_multiplies_f32_in_tf32_where_the_gpu_has_it() -> None:
    """The same product from HLO is faster than torch's on an A100, with a wide interval; on a V100 it is the same."""
    hlo = program(product(trips=100), source="hlo")
    torch, xla = answer(F32, "a100-40gb"), answer(hlo, "a100-40gb")
    assert torch.step_s is not None
    assert xla.step_s is not None
    assert xla.step_s < torch.step_s / 2
    assert xla.basis.endswith("of TF32 only rates of products are published")
    assert width(xla) > shipped().widths.tf32 > width(torch)
    old, same = answer(F32, "v100-16gb"), answer(hlo, "v100-16gb")
    assert same.step_s == old.step_s
    assert "FP32" in same.basis
    assert width(same) > width(old)


def test_double_precision_and_f8_are_refused() -> None:
    """Products that nobody has published are named with their share; a small one is added by the data sheet."""
    for dtype in ("f64", "f8"):
        refused = answer(program(product(dtype, 100), product()), "h100")
        assert refused.step_s is None
        assert f"products in {dtype} take" in refused.refused
        assert "gpuwaste model calibrate measures them" in refused.refused
        assert public_parts(program(product(dtype)), "h100") == {}
    little = answer(program(product(trips=1000), product("f64")), "h100")
    plain = answer(program(product(trips=1000)), "h100")
    assert little.step_s is not None
    assert plain.step_s is not None
    assert little.step_s > plain.step_s + 2 * SIDE**3 / 67e12


def test_what_cannot_be_computed_is_refused() -> None:
    """Kernels of their author, loops of unknown length, a program of nothing: the reason instead of a time."""
    custom = program(product(), Op(kind="custom", dtype="f32", bytes_read=1e11))
    assert "kernels that only their author knows have 42 % of the bytes and FLOPs" in answer(custom, "t4").refused
    assert public_parts(custom, "t4") == {}
    little = program(product(), Op(kind="custom", dtype="f32", bytes_read=1e8))
    assert answer(little, "t4").refused == ""
    loop = program(product(), unknown_trips=1)
    assert "the trip count of 1 loop is not in the file" in answer(loop, "t4").refused
    assert public_parts(loop, "t4") == {}
    assert "no operation" in answer(program(), "t4").refused


def test_unknown_types_are_refused() -> None:
    """A name that is not in the table, and one that is of several types."""
    assert answer(F32, "abacus").refused == "'abacus' is not in the table of GPU types, and not calibrated"
    assert answer(F32, "p100").refused == ""
    assert answer(F32, "a100").refused.startswith("a100 can be a100-40gb or a100-pcie-40gb or a100-80gb")
    assert public_parts(F32, "abacus") == {}


def test_many_tiny_operations_may_take_as_long_as_their_dispatch() -> None:
    """100,000 additions of a few bytes: the upper end is at least the time in which a framework starts them."""
    tiny = answer(program(Op(kind="elem", dtype="f32", bytes_read=4096, trips=1e5)), "h100")
    assert tiny.step_s is not None
    assert tiny.high_s is not None
    assert tiny.step_s < 1e5 * DISPATCH_S <= tiny.high_s
    large = answer(program(Op(kind="elem", dtype="f32", bytes_read=1e10)), "h100")
    assert width(large) == pytest.approx(shipped().widths.unmeasured)


def test_a_site_s_factors_change_the_time_and_are_named() -> None:
    """Products 1.5 times as long: the time of a program of products too, and the basis names the measured type."""
    plain, found = answer(F32, "h100"), answer(F32, "h100", {"products": 1.5, "moved": 9.0}, "a100-40gb")
    assert plain.step_s is not None
    assert found.step_s == pytest.approx(1.5 * plain.step_s, rel=0.01)
    assert found.basis == f"{plain.basis}; corrected by this site's measurements of a100-40gb"
