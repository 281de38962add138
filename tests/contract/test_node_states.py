"""States of real nodes: a job that wants a node starts there where node_states.py calls its state usable, else not."""

import pytest

from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.site.node_states import is_usable
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = pytest.mark.cluster
NODE = "gpu2"
NOT_AVAILABLE = ("NotAvail", "DOWN", "Reserv", "reserv")  # in the reasons of jobs that want such a node
SET = {"drain": "DRAIN", "down": "DOWN", "fail": "FAIL"}


def state(cluster: LoopbackCluster) -> str:
    """Return the state of the node as the client reads it."""
    client = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    return next(node.state for node in client.nodes() if node.name == NODE)


def starts(cluster: LoopbackCluster) -> bool:
    """Return whether slurmctld starts a job that wants the node; it has answered once the job has a reason."""
    job = cluster.sbatch("sleep 60", w=NODE, time=1)
    seen: list[str] = []

    def decided() -> bool:
        seen.append(cluster.run(["squeue", "-h", "-j", str(job), "-o", "%T|%r"]).stdout.strip())
        return seen[-1].startswith("RUNNING") or any(word in seen[-1] for word in NOT_AVAILABLE)

    wait_until(decided, 60, f"slurmctld to decide on job {job}", lambda: str(seen), poll_s=0.2)
    cluster.run(["scancel", str(job)])
    wait_until(lambda: not cluster.run(["squeue", "-h", "-o", "%i"]).stdout.strip(), 30, f"the end of job {job}")
    return seen[-1].startswith("RUNNING")


@pytest.mark.parametrize("word", SET)
def test_a_node_that_is_set_unusable_starts_no_job(cluster: LoopbackCluster, word: str) -> None:
    """Drained, down and failing nodes start no job and are called unusable; a resumed node is usable and starts one."""
    cluster.reset()
    cluster.run(["scontrol", "update", f"nodename={NODE}", f"state={word}", "reason=fan"])
    try:
        assert SET[word] in state(cluster)
        assert (is_usable(state(cluster)), starts(cluster)) == (False, False)
    finally:
        cluster.run(["scontrol", "update", f"nodename={NODE}", "state=resume"])
    cluster.wait_nodes_idle()
    assert (is_usable(state(cluster)), starts(cluster)) == (True, True)


def test_a_maintenance_reservation_is_no_state_of_the_node(cluster: LoopbackCluster) -> None:
    """A node in maintenance prints MAINT or RESERVED and is usable: its reservation, not its state, keeps jobs away."""
    cluster.reset()
    words = ["reservationname=fan", "starttime=now", "duration=10", "flags=maint,ignore_jobs", "users=root"]
    cluster.run(["scontrol", "create", "reservation", *words, f"nodes={NODE}"])
    try:
        wait_until(lambda: {"MAINT", "RESERVED"} & set(state(cluster).split("+")) != set(), 60, "the state MAINT")
        assert is_usable(state(cluster))
        assert not starts(cluster)
    finally:
        cluster.run(["scontrol", "delete", "reservationname=fan"])
    cluster.wait_nodes_idle(60)
    assert starts(cluster)
