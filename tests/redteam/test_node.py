"""A compromised node with a good credential: what it can make the hub keep is bounded, and goes away again."""

from tests.unit.hub.rig import FakeClock

from gpuwaste.hub.metrics import MAX_NODES, HubMetrics


def test_names_that_a_node_makes_up_are_bounded_on_metrics() -> None:
    """Without check_origin an agent may name any node: no more than so many have a series, and the newest stay."""
    metrics = HubMetrics(FakeClock())
    for number in range(MAX_NODES + 100):
        metrics.batch(f"made-up-{number}", 1, 1, 0)
        metrics.batch("honest", 1, 1, 0)
    ages = metrics.batch_ages_s()
    assert len(ages) == MAX_NODES
    assert {"honest", f"made-up-{MAX_NODES + 99}"} <= set(ages)
