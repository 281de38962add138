"""Requests compared: what each goal marks, and which time several GPUs have."""

import pytest
from msgspec.structs import replace

from gpuwaste.estimate.choices import SHARDED, Work, choice, chosen
from gpuwaste.estimate.estimate_types import EstimateChoice, StepTime
from gpuwaste.estimate.program_memory import MemoryEstimate
from gpuwaste.slurm.gpu_types import GIB, device


def need(gib: float) -> MemoryEstimate:
    size = int(gib * GIB)
    return MemoryEstimate(size, int(size * 0.9), int(size * 1.1), size, "a test's")


def row(
    gpu: str,
    gib: float,
    step_s: float | None,
    *,
    gpus: int = 1,
    batch: int = 8,
    price: float = 1.0,
    pipeline: bool = False,
) -> EstimateChoice:
    high = None if step_s is None else step_s * 1.05
    low = None if step_s is None else step_s * 0.95
    time = StepTime(gpu=gpu, step_s=step_s, low_s=low, high_s=high, refused="" if step_s else "not measured")
    work = Work(samples=80_000)
    return choice(need(gib), device(gpu), time, gpus=gpus, pipeline=pipeline, batch=batch, work=work, price=price)


def test_a_row_has_steps_run_gpu_hours_and_cost() -> None:
    """80,000 samples in batches of 8 are 10,000 steps; at 0.36 s they are one hour, and cost its price."""
    found = row("h100", 10, 0.36, price=2.5)
    assert found.steps == 10_000
    assert found.run_s == pytest.approx(3600)
    assert found.gpu_hours == pytest.approx(1)
    assert found.cost == pytest.approx(2.5)


def test_fastest_and_cheapest_differ_by_price() -> None:
    """The faster type costs more than it saves: cheapest takes the other."""
    rows = [row("h100", 10, 0.1, price=9), row("t4", 10, 0.5, price=1)]
    prices = {"h100": 9.0, "t4": 1.0}
    assert chosen(rows, "fastest", prices) == (0, [])
    assert chosen(rows, "cheapest", prices) == (1, [])
    assert chosen(rows, "cheapest", {})[0] == 0  # GPU-hours


def test_a_type_without_a_price_is_not_compared_by_cost() -> None:
    """Where some types have prices, one without is left out and named."""
    place, notes = chosen([row("h100", 10, 0.1), row("t4", 10, 0.5)], "cheapest", {"t4": 1.0})
    assert place == 1
    assert notes == ["no price for h100: not compared"]


def test_larger_batches_are_compared_at_equal_samples() -> None:
    """A step of 16 that takes less than two steps of 8 is faster; of intervals that overlap it says so."""
    rows = [row("h100", 10, 0.10, batch=8), row("h100", 10, 0.19, batch=16)]
    place, notes = chosen(rows, "fastest", {})
    assert place == 1
    assert "not certainly better than 1 other" in notes[0]


def test_what_may_not_fit_is_never_chosen() -> None:
    """The fastest row is too close to tell: the one that fits is taken."""
    assert chosen([row("h100", 75, 0.1), row("b200", 75, 0.2)], "fastest", {})[0] == 1


def test_copies_on_several_gpus_share_the_samples() -> None:
    """4 copies with batches of 8 take 2,500 steps for 80,000 samples; GPU-hours and cost are of all four."""
    found = row("h100", 10, 0.36, gpus=4, price=2.5)
    assert (found.fits, found.copies, found.steps) == ("fits on one", 4, 2500)
    assert found.run_s == pytest.approx(900)
    assert found.gpu_hours == pytest.approx(1)
    assert found.cost == pytest.approx(2.5)


def test_steps_are_those_of_one_copy() -> None:
    """Where only steps are given, copies divide them: the work is the same."""
    assert Work(steps=1000).steps_of(None) == 1000
    assert Work(steps=1001).steps_of(None, 4) == 251
    assert Work().steps_of(8, 4) is None


def test_more_gpus_are_faster_and_not_cheaper() -> None:
    """A step of four copies that takes 10 % longer is nearly four times as fast, and costs more GPU-hours."""
    rows = [row("h100", 10, 0.10), row("h100", 10, 0.11, gpus=4)]
    assert chosen(rows, "fastest", {})[0] == 1
    assert chosen(rows, "cheapest", {})[0] == 0
    unknown = [replace(each, run_s=None) for each in rows]
    assert chosen(unknown, "fastest", {})[0] == 1
    assert chosen(unknown, "cheapest", {})[0] == 0


def test_what_must_be_sharded_has_no_time_but_as_a_pipeline() -> None:
    """Memory says whether one is enough, must be sharded, or never fits; a pipeline keeps the batch of the file."""
    fits = {gib: row("t4", gib, 0.1, gpus=4).fits for gib in (10, 14, 40, 80)}
    assert fits == {10: "fits on one", 14: "may have to be sharded", 40: "must be sharded", 80: "does not fit"}
    found = row("t4", 40, 0.1, gpus=4)
    assert (found.step_s, found.run_s, found.cost, found.refused) == (None, None, None, SHARDED)
    staged = row("t4", 40, 0.1, gpus=4, pipeline=True)
    assert (staged.step_s, staged.copies, staged.steps, staged.refused) == (0.1, 1, 10_000, "")
    assert row("t4", 80, 0.1, gpus=4, pipeline=True).refused == SHARDED
    assert chosen([staged], "fastest", {})[0] is None


def test_smallest_needs_no_times() -> None:
    """The least GPU memory that holds it, of equals the largest batch; sharded only where nothing else fits."""
    rows = [row("h100", 10, None), row("t4", 10, None), row("t4", 11, None, batch=16)]
    assert chosen(rows, "smallest", {}) == (2, [])
    place, notes = chosen([row("t4", 40, None), row("t4", 40, None, gpus=4)], "smallest", {})
    assert place == 1
    assert "sharded evenly" in notes[0]
    assert chosen([row("t4", 80, None)], "smallest", {})[0] is None


def test_without_times_nothing_is_cheapest() -> None:
    """No row is marked, and the reason is there."""
    place, notes = chosen([row("h100", 10, None)], "cheapest", {})
    assert place is None
    assert "cheapest: no choice has a time (not measured)" in notes[0]
