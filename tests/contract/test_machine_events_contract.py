"""What a real slurmdbd and slurmctld tell of a node that fails and of a reservation that changes and is deleted."""

import time

import pytest

from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = pytest.mark.cluster
NODE = "gpu2"


def test_the_past_of_nodes_and_reservations_has_true_times(cluster: LoopbackCluster) -> None:
    """A drained node has an outage until it is resumed; a reservation has its nodes by time, and its early end."""
    cluster.reset()
    began = int(time.time())
    client = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    words = ["starttime=now", "duration=10", "flags=maint,ignore_jobs", "users=root", f"nodes={NODE}"]
    cluster.run(["scontrol", "update", f"nodename={NODE}", "state=drain", "reason=a|b"])
    cluster.run(["scontrol", "create", "reservation", "reservationname=fan", *words])
    try:
        wait_until(
            lambda: bool(outages(client, began) and reserved(client, began)), 30, "the open outage and reservation"
        )
        assert [(one.node, one.end) for one in outages(client, began)][-1] == (NODE, None)
        (one,) = reserved(client, None)
        assert (one.nodes, one.end - one.start, "MAINT" in one.flags) == (NODE, 600, True)
        time.sleep(1.1)  # slurmdbd keeps a part of one second at least
        cluster.run(["scontrol", "update", "reservationname=fan", f"nodes=gpu1,{NODE}"])
        wait_until(lambda: len(reserved(client, began)) == 2, 30, "the second part of the reservation")
        time.sleep(1.1)
    finally:
        cluster.run(["scontrol", "delete", "reservationname=fan"])
        cluster.run(["scontrol", "update", f"nodename={NODE}", "state=resume"])
    wait_until(lambda: all(one.end for one in outages(client, began)), 30, "the end of the outage")
    wait_until(lambda: reserved(client, began)[-1].end <= time.time(), 30, "the end of the reservation")
    assert reserved(client, None) == []
    first, second = reserved(client, began)
    assert (first.nodes, second.nodes, first.end) == (NODE, "gpu[1-2]", second.start)
    assert began <= first.start < second.start < second.end <= time.time()
    assert {one.node for one in outages(client, began)} == {NODE}
    cluster.wait_nodes_idle(60)


def outages(client: CommandClient, since: int) -> list[NodeOutage]:
    """Return those that began in this test."""
    found = client.outages(since)
    assert not found.bad, found.error
    return [one for one in found.rows if one.start >= since]


def reserved(client: CommandClient, since: int | None) -> list[ReservedNodes]:
    found = client.reservations(since)
    assert not found.bad, found.error
    return [one for one in found.rows if one.name == "fan"]
