"""Why nodes take no jobs, from states as Slurm's commands print them."""

from contextlib import closing

from gpuwaste.jobs.machine.machine_store import add_nodes, replace_outages, replace_reservations
from gpuwaste.jobs.machine.types import ALWAYS, MachineNode, NodeOutage, ReservedNodes
from gpuwaste.ledger.balance.reads import inputs_of
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import StandingClock

REASONS = {
    "DRAIN": "drained",
    "DRNG": "drained",
    "DRAIN$": "drained",
    "IDLE+DRAIN": "drained",
    "DOWN": "down",
    "DOWN*": "down",
    "DOWN+DRAIN": "down",
    "FAILG": "down",
    "FUTR": "down",
}


def test_states_and_reservations_close_nodes() -> None:
    """A node that drains is drained, one that is down too is down; a reservation with MAINT is maintenance."""
    outages = [NodeOutage("a", 10 * k, 10 * k + 5, state) for k, state in enumerate(REASONS)]
    reserved = [ReservedNodes("r", 0, 9, "a", "SPEC_NODES"), ReservedNodes("m", 0, 9, "a,b", "IGNORE_JOBS,MAINT")]
    with closing(HubStore.open(":memory:", StandingClock(1000))) as store, store.writing() as db:
        add_nodes(db, "gw", [MachineNode("a", ALWAYS, None, 4, "a100", 16, 1 << 30, "p", "")])
        replace_outages(db, "gw", outages, ALWAYS)
        replace_reservations(db, "gw", reserved, ALWAYS)
        closures = inputs_of(db, "gw", 0, 1000).closures
    found = [(closure.start, closure.reason.value) for closure in closures if closure.start or closure.end == 5]
    assert found == [(10 * k, reason) for k, reason in enumerate(REASONS.values())]
    assert sorted(closure.reason.value for closure in closures if closure.end == 9) == ["maintenance", "reserved"]
