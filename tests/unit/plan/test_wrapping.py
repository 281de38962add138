"""The rule of the advice on wrapping short jobs, on the study's own table."""

import pytest
from tests.unit.plan.facts import CONFIG, LIMITS, NODES, site

from gpuwaste.plan.wrapping import AFTER_END_S, Gain, Way, gain
from gpuwaste.plan.wrapping_study import ROWS


@pytest.mark.parametrize(("way", "pause_s"), [("vertical", 0), ("vertical", AFTER_END_S), ("horizontal", 0)])
def test_the_table_has_every_row_that_is_asked_for(way: Way, pause_s: int) -> None:
    """Each fair share finds the row nearest to it; together they are all cases; none is better than its best."""
    shares = {row[2] for row in ROWS if row[2] is not None}
    cases = 0
    for share in shares:
        found = gain(way, share, idle=False, pause_s=pause_s)
        assert (way, pause_s, share, *found) in ROWS
        assert found.least <= found.mean <= found.most
        cases += found.cases
    assert gain(way, None, idle=False, pause_s=pause_s).cases == cases
    assert gain(way, 0.0, idle=False, pause_s=pause_s) == gain(way, min(shares), idle=False, pause_s=pause_s)
    assert gain(way, 0.1, idle=True, pause_s=pause_s) == gain(way, None, idle=True, pause_s=pause_s)


@pytest.mark.parametrize(
    ("mean", "longer", "verdict"),
    [
        (0.02, 0.0, "wrap them"),
        (0.02, 0.2, "keep single jobs"),
        (0.001, 0.05, "wrapping gains nothing"),
        (-0.002, 0.08, "wrapping gains nothing"),
        (-0.02, 0.05, "keep single jobs"),
    ],
)
def test_a_verdict_weighs_the_mean_and_how_often_it_ends_later(mean: float, longer: float, verdict: str) -> None:
    """Less than a hundredth of the run time is nothing; above a tenth of cases that end later is not worth it."""
    assert Gain(12, mean, -0.1, 0.1, longer).verdict == verdict


@pytest.mark.parametrize(
    ("config", "limits", "found"),
    [
        ("PriorityType = priority/multifactor\nPriorityWeightFairShare = 10\n", LIMITS, 0.2),
        ("PriorityType = priority/multifactor\nPriorityWeightFairShare = 0\n", LIMITS, None),
        ("PriorityType = priority/basic\nPriorityWeightFairShare = 10\n", LIMITS, None),
        ("PriorityType = priority/multifactor\nPriorityWeightFairShare = 10\n", LIMITS.replace("0.20", "nan"), None),
        ("PriorityType = priority/multifactor\nPriorityWeightFairShare = 10\n", "", None),
    ],
)
def test_fair_share_counts_where_it_orders_the_queue(config: str, limits: str, found: float | None) -> None:
    """It is that of the user's association, and nothing at a site whose priorities have no weight for it."""
    assert site(config=CONFIG + config, assoc_mgr=limits).fair_share("proj1", "alice", "gpu") == found


@pytest.mark.parametrize(("state", "idle"), [("IDLE", True), ("IDLE+DRAIN", False), ("MIXED", False), ("IDLE*", False)])
def test_a_node_is_idle_where_it_takes_jobs(state: str, idle: bool) -> None:
    """A node that is drained, down, silent or reserved is not room for a job."""
    assert site(node=NODES.replace("State=IDLE", f"State={state}")).has_idle("gpu") is idle
