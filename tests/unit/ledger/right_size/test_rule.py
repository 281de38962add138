"""The rule of the right size: chance and bound from past runs, and the slowdown on a smaller GPU."""

import random

import pytest

from gpuwaste.ledger.right_size.gpu_sizes import size_of, slow_double, speed_of
from gpuwaste.ledger.right_size.reads import site_sizes
from gpuwaste.ledger.right_size.rule import (
    MIN_RUNS,
    GpuActivity,
    GpuSpeed,
    Growth,
    Growths,
    Peak,
    growths,
    need_of,
    slowdown,
)

GIB = 1 << 30


def grown(*ratios: tuple[float, float]) -> Growths:
    """Return growths of steady jobs."""
    return Growths(Growth(0, ratio, room) for ratio, room in ratios)


def test_a_growth_is_over_the_runs_that_had_ended_at_the_submission() -> None:
    """Two runs of a burst are both compared with the five before it, and not with one another."""
    before = [Peak(used, 100, number, number + 1) for number, used in enumerate((1, 2, 10, 3, 4))]
    burst = [Peak(20, 100, 6, 8), Peak(40, 100, 7, 9)]
    assert growths([*before, *burst]) == [Growth(3, 2.0, 10.0), Growth(3, 4.0, 10.0)]


def test_the_chance_counts_only_runs_that_could_have_grown_so_far() -> None:
    """Runs that had no room for the ratio are neither fits nor misfits; one unseen run always is a misfit."""
    growths = grown(*[(1.0, 1.2)] * 50, *[(1.0, 9.0)] * 98, (3.0, 9.0))
    assert growths.chance(0, 2.0) == pytest.approx(2 / 100)
    assert growths.chance(0, 1.1) == pytest.approx(2 / 150)
    assert growths.chance(1, 2.0) == 1.0  # jobs that vary more: no run tells


def test_nothing_is_bounded_on_fewer_than_99_growths() -> None:
    """A chance of 1 % follows from 99 growths at the earliest."""
    assert grown(*[(1.0, 9.0)] * 98).bound(0) is None
    assert grown(*[(0.9, 9.0)] * 99).bound(0) == 1.0


def test_a_need_asks_for_runs() -> None:
    """Fewer runs than the minimum, or runs that used nothing, tell nothing."""
    growths = grown(*[(1.0, 9.0)] * 200)
    assert need_of([Peak(5, 40)] * (MIN_RUNS - 1), growths) is None
    assert need_of([Peak(0, 40)] * MIN_RUNS, growths) is None
    need = need_of([Peak(5, 40)] * MIN_RUNS, growths)
    assert need is not None
    assert (need.highest, need.bound()) == (5, 5)
    assert need.chance(10) == pytest.approx(1 / 201)


def test_the_next_run_exceeds_the_bound_as_rarely_as_told() -> None:
    """Over drawn jobs with random peaks the share of runs above the bound is at most 1 %, give or take."""
    rng = random.Random(4)

    def drawn() -> list[Peak]:
        scale = rng.lognormvariate(0, 1)
        return [Peak(scale * rng.lognormvariate(0, 0.3), 1e9, n, n + 1) for n in range(12)]

    known, later = Growths.of(drawn() for _ in range(500)), [drawn() for _ in range(2000)]
    told = []
    for peaks in later:
        need = need_of(peaks[:-1], known)
        bound = None if need is None else need.bound()
        if bound is not None:
            told.append(peaks[-1].used > bound)
    assert len(told) > 1500
    assert sum(told) / len(told) < 0.016


@pytest.mark.parametrize(
    ("activity", "slower"),
    [
        (GpuActivity(busy=1.0, width=1.0, moved=None), 7 / 2),
        (GpuActivity(busy=0.4, width=1.0, moved=None), 0.6 + 0.4 * 7 / 2),
        (GpuActivity(busy=1.0, width=0.2, moved=0.2), 1.0),
        (GpuActivity(busy=1.0, width=0.2, moved=0.5), 2.0),
    ],
)
def test_slowdown(activity: GpuActivity, slower: float) -> None:
    """Busy time gets longer by what the smaller GPU lacks of the busy part; the rest of the time stays."""
    assert slowdown(activity, GpuSpeed(compute=2 / 7, bandwidth=2 / 8)) == pytest.approx(slower, rel=0.15)


def test_gres_types_are_sizes_by_memory_and_slice() -> None:
    """Memory decides which a100 is meant, a slice without a type is of the site's only GPU that has it."""
    sizes = site_sizes(["a100", "1g.10gb", "3g.40gb", "unheard_of"], {"a100": 80 * GIB})
    assert sizes["a100"].device.name == "a100-80gb"
    assert sizes["3g.40gb"].part == pytest.approx(0.5)
    assert sizes["1g.10gb"].memory_b < 10 * GIB
    assert set(sizes) == {"a100", "1g.10gb", "3g.40gb"}
    assert size_of("1g.10gb", None) is None  # of which GPU?
    assert size_of("a100", None) is None  # 40 or 80 GB?
    named = size_of("nvidia_h100_80gb_hbm3_1g.10gb", None)
    assert named is not None
    assert named.device.name == "h100"
    speed = speed_of(sizes["1g.10gb"], sizes["a100"])
    assert speed.compute == pytest.approx(1 / 7)
    assert speed.bandwidth == pytest.approx(1 / 8)


def test_a_type_without_double_precision_is_named() -> None:
    """An L40S computes doubles at a sixty-fourth: a program of doubles would crawl there."""
    a100, l40s = size_of("a100", 80 * GIB), size_of("l40s", None)
    assert a100 is not None
    assert l40s is not None
    assert slow_double(l40s, a100)
    assert not slow_double(a100, a100)
