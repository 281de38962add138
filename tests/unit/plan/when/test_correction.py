"""Waits corrected by past errors; run times from those that have ended."""

from collections.abc import Sequence

import numpy as np
import pytest

from gpuwaste.plan.start_time.run_times import ENOUGH, PastRuns
from gpuwaste.plan.start_time.scheduler_queue import LEVELS, NO_LIMIT_S
from gpuwaste.plan.start_time.wait_correction import TIE_S, OpenWaits, WaitShifts


@pytest.mark.parametrize(("factor", "width"), [(8.0, 0.1), (0.2, 0.5), (1.0, 3.0)])
def test_coverage(factor: float, width: float) -> None:
    """With errors drawn from one distribution, however wrong the simulated interval, 80 % of the waits are in it."""
    rng = np.random.default_rng(4)
    shifts, inside = WaitShifts(), []
    for k in range(4000):
        middle = float(np.exp(rng.uniform(6, 11)))
        said = [middle * np.exp(-width), middle, middle * np.exp(width)]
        waited = middle * factor * float(np.exp(rng.normal(0, 1)))
        low, _, high = shifts.apply(said)
        if k >= 1000:
            inside.append(low <= waited <= high)
        shifts.observe(said, waited)
    assert 0.77 <= np.mean(inside) <= 0.83


def test_coverage_where_most_do_not_wait() -> None:
    """Two of three jobs wait 0 s: the interval, in whole seconds, still holds 80 %, and p10 stays at most a tie."""
    rng = np.random.default_rng(4)
    shifts, inside, lows = WaitShifts(), [], []
    for k in range(6000):
        waited = 0.0 if rng.random() < 2 / 3 else float(rng.exponential(5000))
        low, _, high = map(round, shifts.apply([0.0, 0.0, 500.0]))
        if k >= 2000:
            inside.append(low <= waited <= high)
            lows.append(low)
        shifts.observe([0.0, 0.0, 500.0], waited)
    assert 0.77 <= np.mean(inside) <= 0.84
    assert max(lows) <= TIE_S


def test_nothing_learnt() -> None:
    """Without past waits what was simulated stays, and nothing becomes negative or falls."""
    shifts = WaitShifts()
    assert shifts.apply([10.0, 500.0, 9000.0]) == pytest.approx([10, 500, 9000])
    assert shifts.apply([-5.0, 100.0, 50.0]) == pytest.approx([0, 100, 100])


def test_past_runs() -> None:
    """A user's jobs of one shape come first, then the user's, then everybody's; the limit stays possible."""
    past = PastRuns()
    assert past.quantiles("a", 1, 100).tolist() == pytest.approx([100 * level for level in LEVELS])
    for _ in range(ENOUGH):
        past.observe("a", 1, 50, 100)
        past.observe("b", 1, 20, 100)
    for _ in range(ENOUGH):
        past.observe("a", 2, 10, 100)
    assert past.quantiles("a", 1, 200)[:-1].tolist() == [100.0] * 7
    assert past.quantiles("a", 2, 200)[:-1].tolist() == [20.0] * 7
    assert past.quantiles("b", 9, 200)[:-1].tolist() == pytest.approx([40.0] * 7)
    assert past.quantiles("c", 1, 200)[3] == pytest.approx(40.0)
    assert past.quantiles("c", 1, 200)[-1] == 200


@pytest.mark.parametrize(
    ("run", "limit"), [(-1, 100), (10, 0), (10, NO_LIMIT_S), (float("nan"), 100), (10, float("nan"))]
)
def test_teaches_nothing(run: float, limit: float) -> None:
    """A run without a time or a limit teaches nothing."""
    past = PastRuns()
    past.observe("a", 1, run, limit)
    assert past.quantiles("a", 1, 100).tolist() == pytest.approx([100 * level for level in LEVELS])


def test_packed() -> None:
    """What was learnt survives a restart, and what is no such thing is refused."""
    rng, shifts = np.random.default_rng(1), WaitShifts()
    for _ in range(500):
        shifts.observe([100.0, 200.0, 300.0], float(rng.exponential(5000)))
    other = WaitShifts()
    other.unpack(shifts.pack())
    said = [50.0, 60.0, 70.0]
    assert other.apply(said) == pytest.approx(shifts.apply(said))
    assert other.apply(said)[2] > 1000
    with pytest.raises(ValueError, match="gaps of"):
        other.unpack(np.zeros((3, 2)))


def test_open_waits() -> None:
    """A start teaches once, by what was said first; a cancelled job and a wait that cannot be teach nothing."""
    seen: list[tuple[list[float], float]] = []

    class Seen(WaitShifts):
        def observe(self, waits_s: Sequence[float], waited_s: float) -> None:
            seen.append((list(waits_s), waited_s))

    opened = OpenWaits(Seen(), kept=2)
    opened.said(1, [1, 2, 3])
    opened.said(1, [7, 8, 9])
    opened.said(2, [float("nan"), 1, 2])
    opened.said(3, [4, 5, 6])
    opened.gone(3)
    assert [opened.started(job, 60.0) for job in (1, 1, 2, 3)] == [True, False, False, False]
    assert seen == [([1, 2, 3], 60.0)]
    for job in (4, 5, 6):
        opened.said(job, [1, 1, 1])
    assert len(opened) == 2
    assert not opened.started(4, 1.0), "given up"
    assert not opened.started(5, -1.0)
    assert opened.started(6, 0.0)
