"""The answer on one program and GPU type: a time with its grounds, or the words why there is none."""

import dataclasses
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace
from tests.unit.estimate.planted_times import planted, program, true_s

from gpuwaste.estimate.program import OpSum
from gpuwaste.estimate.step_time import NOT_CALIBRATED, step_time
from gpuwaste.estimate.time_model import SCALED_SD, TimeModel
from gpuwaste.models.time_fit import fit_model
from gpuwaste.models.time_transfer import transfer
from gpuwaste.slurm.gpu_types import find


@cache
def models() -> Mapping[str, TimeModel]:
    return {"rtx3090": fit_model("rtx3090", planted())}


def asked(family: str = "mlp", seed: int = 99) -> dict[str, OpSum]:
    return program(np.random.default_rng(seed), family)


def test_a_program_like_those_measured_has_a_time_and_its_grounds() -> None:
    """The time is near the truth, inside its interval, and the basis counts the programs measured."""
    found = step_time(models(), asked(), "rtx3090", family="mlp")
    truth = true_s(asked(), "mlp")
    assert found.step_s == pytest.approx(truth, rel=0.1)
    assert found.low_s is not None
    assert found.high_s is not None
    assert found.low_s < truth < found.high_s
    assert (found.basis, found.refused) == ("120 programs measured on rtx3090", "")


def test_names_of_slurm_find_the_type() -> None:
    """A gres name or NVML's name is the same type."""
    assert step_time(models(), asked(), "rtx_3090").step_s == step_time(models(), asked(), "rtx3090").step_s


def test_a_new_type_is_scaled_and_says_so() -> None:
    """Nothing was measured on the 4090: the basis says so, and the interval is wider."""
    old = step_time(models(), asked(), "rtx3090", family="mlp")
    new = step_time(models(), asked(), "rtx4090", family="mlp")
    assert new.basis == "scaled from rtx3090 by data sheets; nothing was measured on rtx4090"
    assert old.step_s is not None
    assert new.step_s is not None
    assert new.step_s < old.step_s
    assert old.high_s is not None
    assert new.high_s is not None
    assert new.high_s / new.step_s > old.high_s / old.step_s


def test_a_corrected_type_that_is_scaled_once_more_is_as_unsure() -> None:
    """The 4090's model was corrected by few programs; on a type that is scaled from it nothing was measured at all."""
    source, corrected = find("rtx3090"), find("rtx4090")
    assert source
    assert corrected
    model = transfer(models()["rtx3090"], source, corrected, planted(20, seed=2))
    target = replace(corrected, name="rtx6000ada")
    old = model.predict([asked()], ["mlp"])[1][0]
    new = model.scaled(corrected, target).predict([asked()], ["mlp"])[1][0]
    assert new == pytest.approx(np.hypot(old, SCALED_SD))


def test_without_any_calibration_nothing_is_claimed() -> None:
    """A site that measured nothing gets no time from data sheets."""
    assert step_time({}, asked(), "h100").refused == NOT_CALIBRATED


def test_a_type_that_nobody_knows_is_refused() -> None:
    """A type that is neither measured nor in the table is named, with what was measured."""
    found = step_time(models(), asked(), "abacus")
    assert found.refused == "'abacus' is neither measured nor in the table of GPU types; measured: rtx3090"


def test_kinds_never_measured_that_carry_the_time_are_refused() -> None:
    """A sort of a terabyte is more than the rest: refused, and the kind is named."""
    found = step_time(models(), {**asked(), "sort/i32": OpSum(10, 0, 1e12)}, "rtx3090")
    assert found.step_s is None
    assert "never measured on rtx3090" in found.refused
    assert "sort/i32" in found.refused


def test_kinds_never_measured_that_carry_little_are_added() -> None:
    """A small sort adds what the data sheet says at least."""
    plain = step_time(models(), asked(), "rtx3090")
    more = step_time(models(), {**asked(), "sort/i32": OpSum(1, 0, 936e6)}, "rtx3090")
    assert plain.step_s is not None
    assert more.step_s == pytest.approx(plain.step_s + 1e-3 + 5e-6)


def test_a_kernel_of_its_author_is_refused_sooner() -> None:
    """Two hundredths of the time in a custom kernel are too much: the data sheet bounds nothing there."""
    whole = sum(max(o.flops / 71e12, o.bytes / 936e9) + o.count * 5e-6 for o in asked().values())
    found = step_time(models(), {**asked(), "custom/f16": OpSum(1, 0, 0.02 * whole * 936e9)}, "rtx3090")
    assert "custom/f16" in found.refused


def test_a_loop_of_unknown_length_is_refused() -> None:
    """A time without the trip count would be of one trip."""
    assert "trip count of 2 loops" in step_time(models(), asked(), "rtx3090", unknown_trips=2).refused


def test_a_step_far_outside_of_those_measured_is_refused() -> None:
    """A step a thousand times longer than the longest is no interpolation."""
    large = {key: OpSum(o.count * 1e4, o.flops * 1e4, o.bytes * 1e4) for key, o in asked().items()}
    assert "far outside of the steps measured on rtx3090" in step_time(models(), large, "rtx3090").refused


def test_a_mix_unlike_all_measured_is_refused() -> None:
    """A program of one kind by itself resembles none of the planted mixes."""
    found = step_time(models(), {"mm/bf16": OpSum(100, 1e12, 1e10)}, "rtx3090")
    assert "is unlike all programs measured" in found.refused


def test_a_program_of_nothing_has_no_time() -> None:
    """No operations, no step."""
    assert "no operation" in step_time(models(), {}, "rtx3090").refused


def test_of_several_types_of_a_name_the_measured_one_is_meant() -> None:
    """Of a100 this site has measured one: it is taken; two, or none: the answer names all and no time is claimed."""
    (one,) = models().values()
    named = {
        name: dataclasses.replace(one, grounds=dataclasses.replace(one.grounds, gpu=name))
        for name in ("a100-40gb", "a100-80gb")
    }
    found = step_time({"a100-80gb": named["a100-80gb"]}, asked(), "a100")
    assert (found.gpu, found.refused) == ("a100-80gb", "")
    for measured in (named, models()):
        refused = step_time(measured, asked(), "a100").refused
        assert "a100 can be a100-40gb or a100-pcie-40gb or a100-80gb or a100-pcie-80gb, and none of these" in refused
