"""Energy in the row of an hour: by the GPU's counter, else by power, and which part of it was drawn at 0 %."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.agent.test_hour_book import HOUR_0, holding, sample, tick

from gpuwaste.agent.hour_aggregator import HourAggregator
from gpuwaste.agent.readings import JobMap
from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.hour import AllocationHour, hour_from_wire

T0 = HOUR_0 + 1_000_000


def rows(*samples: dict[str, Any], share: float = 1.0, at: Sequence[int] = (), t0: int = T0) -> list[AllocationHour]:
    """Return the rows of one GPU held from the first sample on, one sample every 10 s or at these seconds."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    seconds = at or [10 * number for number in range(len(samples))]
    for second, values in zip(seconds, samples, strict=True):
        book.observe(tick(sample(t0 + 1000 * second, **values), jobs=JobMap((holding(t0, share=share),))))
    return book.flush((t0 + 1000 * (seconds[-1] + 10)) * 1000)


def drawn(row: AllocationHour) -> tuple[float | None, int | None, float | None]:
    """Return energy, the time over which it was measured, and its idle part."""
    return row.energy_j, row.energy_ms, row.idle_energy_j


def test_power_counts_where_there_is_no_counter() -> None:
    """Each sample's power stands for its interval; its idle part is that of the samples at 0 %."""
    (row,) = rows({"power_mw": 1}, {"util": 90.0, "power_mw": 400_000}, {"power_mw": 60_000}, {"power_mw": 50_000})
    assert drawn(row) == (4_000 + 600 + 500, 30_000, 1_100)


def test_neither_counter_nor_power_is_unknown_and_not_0() -> None:
    """A GPU of which no power is read, a MIG instance for one, has no energy and no measured time."""
    (row,) = rows({"util": 90.0}, {"util": 90.0})
    assert drawn(row) == (None, None, None)
    assert not {"energy_s", "idle_energy_j"} & row.to_wire().keys()
    assert row.to_wire()["energy_j"] is None


def test_a_sample_without_power_is_not_measured() -> None:
    """Of three intervals one has no power: the energy is of the two others, and the row says so."""
    (row,) = rows({"power_mw": 1}, {"power_mw": 100_000}, {}, {"power_mw": 200_000})
    assert drawn(row) == (3_000, 20_000, 3_000)


def test_a_counter_bridges_a_gap_and_power_does_not() -> None:
    """The counter's difference counts for a gap of 100 s, none of it as idle; a power read after a gap does not."""
    (row,) = rows({"energy_mj": 0}, {"energy_mj": 1_000_000}, {"energy_mj": 11_000_000}, at=(0, 10, 110))
    assert drawn(row) == (11_000, 110_000, 1_000)
    (row,) = rows({"power_mw": 100_000}, {"power_mw": 100_000}, {"power_mw": 100_000}, at=(0, 10, 110))
    assert drawn(row) == (1_000, 10_000, 1_000)


@pytest.mark.parametrize("counter", [5, 10**18], ids=["reset", "leap"])
def test_a_wrong_counter_is_not_believed(counter: int) -> None:
    """Where the counter was reset or leapt, the power counts; without one that interval is not measured."""
    steps = (10**12, 10**12 + 1_000_000, counter, counter + 1_000_000)
    (row,) = rows(*({"energy_mj": value} for value in steps))
    assert drawn(row) == (2_000, 20_000, 2_000)
    (row,) = rows(*({"energy_mj": value, "power_mw": 70_000} for value in steps))
    assert drawn(row) == (2_700, 30_000, 2_700)


def test_a_counter_that_stands_still_is_not_believed_while_power_is_read() -> None:
    """The counter of an MI100 that never moves, at 250 W: the energy is that of the power."""
    (row,) = rows(*[{"energy_mj": 1_004_108, "power_mw": 250_000, "util": 100.0}] * 4)
    assert drawn(row) == (7_500, 30_000, 0)


def test_a_counter_that_stands_still_without_a_power_is_not_measured() -> None:
    """A GPU of which only a counter is read that does not move: its energy is unknown, and not 0."""
    (row,) = rows(*[{"energy_mj": 1_004_108, "util": 100.0}] * 3)
    assert drawn(row) == (None, None, None)


def test_a_sleeping_gpu_draws_nothing() -> None:
    """Where counter and power agree on 0 W for an idle GPU, that is measured; 0 W of a busy one is not."""
    (row,) = rows(*[{"energy_mj": 5, "power_mw": 0}] * 3)
    assert drawn(row) == (0, 20_000, 0)
    for counter in ({"energy_mj": 5}, {}):
        (row,) = rows(*[{"power_mw": 0, "util": 90.0, **counter}] * 3)
        assert drawn(row) == (None, None, None)


def test_a_counter_that_moves_again_is_believed_one_interval_later() -> None:
    """After it stood, a counter's first step may be of more than one interval: that one counts by power."""
    counters = (0, 1_000_000, 1_000_000, 4_000_000, 5_000_000)
    (row,) = rows(*({"energy_mj": value, "power_mw": 70_000} for value in counters))
    assert drawn(row) == (1_000 + 700 + 700 + 1_000, 40_000, 3_400)


def test_a_share_has_its_part_and_hours_are_cut() -> None:
    """A quarter of a GPU has a quarter of the energy; an interval over a full hour is divided by time."""
    t0 = HOUR_0 + 3_600_000 - 14_000
    first, second = rows(*[{"power_mw": 100_000}] * 4, share=0.25, t0=t0)
    assert drawn(first) == pytest.approx((350, 14_000, 350))
    assert drawn(second) == pytest.approx((400, 16_000, 400))


def test_an_impossible_energy_is_refused_and_named() -> None:
    """The hub takes no row whose energy was measured for longer than it lasts, or was idle by more than it drew."""
    (row,) = rows({"power_mw": 100_000}, {"power_mw": 100_000})
    good = row.to_wire()
    assert hour_from_wire(good) == row
    assert (good["energy_s"], good["idle_energy_j"]) == (10.0, 1_000.0)
    with pytest.raises(ParseError, match="energy_s is more than its time"):
        hour_from_wire(good | {"energy_s": 3000.0})
    with pytest.raises(ParseError, match="idle_energy_j is more than energy_j"):
        hour_from_wire(good | {"idle_energy_j": 1_001.0})
    with pytest.raises(ParseError, match="idle_energy_j"):
        hour_from_wire(good | {"idle_energy_j": -1.0})
