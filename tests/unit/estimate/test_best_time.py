"""Which model answers: a site's own, or the public one with the site's factors."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
from tests.unit.estimate import planted_times

from gpuwaste.estimate.best_time import BestTimes
from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.program import Op, Program, fingerprint, op_sums
from gpuwaste.estimate.public.operators import work_of
from gpuwaste.estimate.public.public_answer import public_time
from gpuwaste.estimate.step_time import step_time
from gpuwaste.estimate.time_model import TimeModel
from gpuwaste.models.time_fit import fit_model

FACTORS: Final = {"products": 1.5, "convolutions": 1.5, "moved": 1.5}


@cache
def fitted() -> TimeModel:
    """Return a site's model of the RTX 3090."""
    return fit_model("rtx3090", planted_times.planted())


def models(gpu: str = "rtx3090", **grounds: Any) -> Mapping[str, TimeModel]:
    """Return the models of a site that has measured one type."""
    return {gpu: replace(fitted(), grounds=replace(fitted().grounds, gpu=gpu, **grounds))}


def program(*more: Op) -> Program:
    """Return a program like those that were measured."""
    sums = planted_times.program(np.random.default_rng(99), "mlp")
    ops = [_op(key, each.count, each.flops, each.bytes) for key, each in sums.items()]
    ops.extend(more)
    return Program(
        name="p", source="torch", ops=ops, buffers=[], parameters_b=0, outputs_b=0, fingerprint=fingerprint(ops, []),
    )  # fmt: skip


def _op(key: str, count: float, flops: float, moved: float) -> Op:
    kind, _, dtype = key.partition("/")
    return Op(kind=kind, dtype=dtype, flops=float(flops / count), bytes_read=float(moved / count), trips=count)  # type: ignore[arg-type]


def best(gpu: str, of: Mapping[str, TimeModel], asked: Program | None = None) -> StepTime:
    """Return the time on a type."""
    return BestTimes(asked or program(), of).on(gpu)


def public(gpu: str, asked: Program | None = None, factor: float = 0.0) -> StepTime:
    """Return the public model's time; `factor` is that of all parts, from the RTX 3090."""
    one = asked or program()
    parts = dict.fromkeys(FACTORS, factor) if factor else {}
    return public_time(one, work_of(one), gpu, factors=parts, corrected_by="rtx3090" if factor else "")  # type: ignore[arg-type]


def test_without_models_the_public_model_answers() -> None:
    """A fresh install has a time on any type of the table."""
    found = best("h100", {})
    assert found == public("h100")
    assert found.step_s is not None


def test_a_measured_type_has_its_own_model() -> None:
    """Its errors unknown, or not larger than those of the public model: the site's own."""
    own = step_time(models(), op_sums(program()), "rtx3090")
    assert own.step_s is not None
    for own_error, public_error in ((None, None), (0.1, None), (0.1, 0.1), (0.1, 0.2), (None, 0.1)):
        assert best("rtx3090", models(own_error=own_error, public_error=public_error)) == own
    assert best("geforce_rtx_3090", models()) == own


def test_the_public_model_answers_where_its_measured_error_is_smaller() -> None:
    """On the same programs it was better: its time with the site's factors, named in the basis."""
    found = best("rtx3090", models(own_error=0.1, public_error=0.05, public_factors=FACTORS))
    assert found == public("rtx3090", factor=1.5)
    assert found.basis.endswith("corrected by this site's measurements of rtx3090")


def test_the_public_model_answers_for_a_model_that_is_only_scaled() -> None:
    """Nothing was measured on the type itself: its model in the bundle is from data sheets."""
    assert best("rtx3090", models(programs=0, scaled_from="rtx4090")) == public("rtx3090")


def test_the_public_model_answers_with_a_note_where_the_own_one_refuses() -> None:
    """A program far longer than all measured ones: the public time, and why the site's model has none."""
    large = program(Op(kind="elem", dtype="f32", bytes_read=1e13))
    found = best("rtx3090", models(), large)
    assert found.step_s == public("rtx3090", large).step_s
    assert any("this site's own model gives no time" in note and "far outside" in note for note in found.notes)


def test_the_own_model_answers_where_the_public_one_refuses() -> None:
    """A site's type that is not in the table has the site's model; without any, or for another, both refuse."""
    assert best("abacus", models("abacus")).step_s is not None
    assert best("abacus", {}).refused == "'abacus' is not in the table of GPU types, and not calibrated"
    refused = best("abacus", models())
    assert refused.step_s is None
    assert refused.refused == "'abacus' is neither measured nor in the table of GPU types; measured: rtx3090"


def test_a_type_that_is_not_measured_is_corrected_by_the_nearest() -> None:
    """The A40 is of the 3090's family: all of its factors; an RTX 4090 is of another and takes none."""
    of = models(public_factors=FACTORS)
    assert best("a40", of) == public("a40", factor=1.5)
    assert best("a40", of).basis.endswith("corrected by this site's measurements of rtx3090")
    assert best("rtx4090", of) == public("rtx4090")


def test_of_a_name_of_several_types_the_slowest_is_taken_with_the_interval_of_all() -> None:
    """a100 and v100: the longest time, the least lower end and the largest upper end of the types."""
    f32 = Program(
        name="p", source="torch", ops=[Op(kind="elem", dtype="f32", bytes_read=1e11)], buffers=[], parameters_b=0,
        outputs_b=0, fingerprint=fingerprint([], []),
    )  # fmt: skip
    for name, types in (
        ("a100", ["a100-40gb", "a100-80gb", "a100-pcie-40gb", "a100-pcie-80gb"]),
        ("v100", ["v100-16gb", "v100-32gb", "v100-pcie-16gb", "v100-pcie-32gb"]),
    ):
        each = [public(gpu, f32) for gpu in types]
        found = best(name, {}, f32)
        assert found.gpu == name
        assert found.step_s == max(one.step_s or 0 for one in each)
        assert found.low_s == min(one.low_s or 0 for one in each)
        assert found.high_s == max(one.high_s or 0 for one in each)
        assert found.basis.endswith(f"(the slowest that {name} may be)")


def test_a_name_of_several_types_is_refused_where_one_is() -> None:
    """A program in f64 has no time on any of them."""
    f64 = program(Op(kind="mm", dtype="f64", flops=1e15, bytes_read=1e9, shapes=((4096, 4096),) * 3))
    found = best("a100", {}, f64)
    assert (found.gpu, found.step_s) == ("a100", None)
    assert "products in f64" in found.refused
