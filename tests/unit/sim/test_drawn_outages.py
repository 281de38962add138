"""Outages drawn from a rate: the same for a seed, as long and as often as the rate says, within the trace."""

from itertools import pairwise

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.sim.drawn_outages import with_failures
from gpuwaste.slurm.site.cluster_model import ClusterModel, Failures, Node, Outage, Partition

DAY = 86400


def machine(nodes: int, failures: Failures | None) -> ClusterModel:
    """Return a machine of equal nodes."""
    names = tuple(f"n{index}" for index in range(nodes))
    outages = (Outage("n0", 5, 9),)
    return ClusterModel(
        "m", tuple(Node(name, 1, 0) for name in names), (Partition("p", names),), outages=outages, failures=failures
    )


def test_a_rate_gives_its_failures() -> None:
    """200 nodes over 1000 days, 100 h between failures and 20 h of repair: availability 5/6, within 2 %."""
    found = with_failures(machine(200, Failures(100, 20)), 1, 0, 1000 * DAY)
    drawn = found.outages[1:]
    down = sum(min(each.end, 1000 * DAY) - each.start for each in drawn) / (200 * 1000 * DAY)
    assert down == pytest.approx(1 / 6, rel=0.02)
    assert len(drawn) == pytest.approx(200 * 1000 * 24 / 120, rel=0.02)
    assert found.failures is None


def test_the_seed_decides() -> None:
    """Equal seeds give equal outages, others give others; a longer trace begins with the same ones."""
    model = machine(5, Failures(50, 10))
    one, again, other = (with_failures(model, seed, 0, 100 * DAY).outages for seed in (1, 1, 2))
    assert one == again != other
    longer = with_failures(model, 1, 0, 200 * DAY).outages
    assert set(one) <= set(longer)


def test_the_outages_of_a_node_do_not_overlap() -> None:
    """Each has a length, begins after the last one's end and before the trace's end; those of the file stay."""
    found = with_failures(machine(3, Failures(0.001, 0.001)), 3, 100, 100 + DAY // 24).outages
    assert Outage("n0", 5, 9) in found
    for node in ("n0", "n1", "n2"):
        own = [each for each in found if each.node == node and each.start >= 100]
        assert own
        assert all(each.start < each.end for each in own)
        assert all(one.end <= two.start for one, two in pairwise(own))
        assert own[-1].start < 100 + DAY // 24


def test_no_rate_and_too_many_failures() -> None:
    """Without a rate nothing is drawn; a rate that gives millions of failures is refused with what to do."""
    assert with_failures(machine(2, None), 1, 0, DAY) == machine(2, None)
    with pytest.raises(ConfigError, match="give a larger mtbf_h"):
        with_failures(machine(1000, Failures(0.01, 0.01)), 1, 0, 100 * DAY)
