"""When the engine takes nodes down and up again: as the model has it, whatever its outages are."""

from gpuwaste.sim.real.run_player import node_events
from gpuwaste.slurm.site.cluster_model import NEVER, ClusterModel, Node, Outage, Partition


def events(*outages: Outage) -> list[tuple[int, str, str]]:
    """Return the events of a cluster of two nodes from second 100 on, in their order."""
    model = ClusterModel("m", (Node("a", 1, 0), Node("b", 1, 0)), (Partition("p", ("a", "b")),), outages=outages)
    return sorted(node_events(model, 100))


def test_a_node_is_up_only_when_all_its_outages_are_over() -> None:
    """Outages that follow one another, overlap or lie within one another are one; those of another node are apart."""
    found = events(Outage("a", 120, 200), Outage("a", 200, 260), Outage("a", 150, 180), Outage("b", 130, 140))
    assert found == [(120, "DOWN", "a"), (130, "DOWN", "b"), (140, "RESUME", "b"), (260, "RESUME", "a")]


def test_what_is_over_before_the_trace_is_left_out() -> None:
    """A node that is down when the trace begins is so from its first second on."""
    assert events(Outage("a", 1, 100), Outage("b", 1, 120)) == [(100, "DOWN", "b"), (120, "RESUME", "b")]


def test_an_outage_that_goes_on_has_no_end() -> None:
    """Else a run with a job that cannot start would wait for it for ever."""
    assert events(Outage("a", 120, NEVER)) == [(120, "DOWN", "a")]
