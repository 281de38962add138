"""How far an agent's clock is away is known from its last batch, within the time that a batch may have taken."""

import pytest

from gpuwaste.ledger.idleness.agent_clocks import TRANSIT_MS, AgentClocks, ClockOffset
from gpuwaste.testing.clocks import FakeClock

NOW_US = 1_700_000_000_000_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_700_000_000)


def test_an_instant_of_an_agent_lies_within_a_minute_of_the_hubs(clock: FakeClock) -> None:
    """A batch that was sent 10 s ago by the agent's clock: it is up to 10 s behind, or up to 50 s ahead."""
    clocks = AgentClocks(clock)
    clocks.note("gpu1", NOW_US - 10_000_000, NOW_US)
    offset = clocks.offset("gpu1")
    assert offset == ClockOffset(10_000)
    assert (offset.latest_ms(1000), offset.earliest_ms(1000)) == (11_000, 11_000 - TRANSIT_MS)


@pytest.mark.parametrize(("late_s", "known"), [(60, True), (-60, True), (61, False), (-61, False), (4000, False)])
def test_a_clock_that_is_far_away_is_unknown(clock: FakeClock, late_s: int, known: bool) -> None:
    """Within a minute it is corrected, beyond it is not known."""
    clocks = AgentClocks(clock)
    clocks.note("gpu1", NOW_US - late_s * 1_000_000, NOW_US)
    assert (clocks.offset("gpu1") is not None) == known


def test_the_newest_batch_counts_and_one_without_a_time_forgets(clock: FakeClock) -> None:
    """Another node's clock is not known; an older agent, which does not state its clock, makes it unknown again."""
    clocks = AgentClocks(clock)
    clocks.note("gpu1", NOW_US, NOW_US)
    clocks.note("gpu1", NOW_US - 5_000_000, NOW_US)
    assert clocks.offset("gpu1") == ClockOffset(5_000)
    assert clocks.offset("gpu2") is None
    clocks.note("gpu1", None, NOW_US)
    assert clocks.offset("gpu1") is None


def test_a_step_of_the_hubs_own_clock_forgets(clock: FakeClock) -> None:
    """What was measured before the hub's clock was set says nothing; time that goes by changes nothing."""
    clocks = AgentClocks(clock)
    clocks.note("gpu1", NOW_US, NOW_US)
    clock.advance(3000)
    assert clocks.offset("gpu1") is not None
    clock.now_us += 3_000_000
    assert clocks.offset("gpu1") is None


def test_nodes_are_bounded(clock: FakeClock) -> None:
    """Of more nodes than a cluster has, those with the oldest batch are forgotten."""
    clocks = AgentClocks(clock)
    for number in range(16_385):
        clocks.note(f"n{number}", NOW_US, NOW_US)
    assert clocks.offset("n0") is None
    assert clocks.offset("n16384") is not None
