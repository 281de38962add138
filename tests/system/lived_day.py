"""What may happen to the GPU nodes of a live cluster within a minute or two, each thing for some seconds."""

import time

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

LASTS_S = 2
SLURMD_TIMEOUT_S = 5


def live(cluster: LoopbackCluster) -> None:
    """Let runs be suspended, requeued and killed, nodes be drained, set down, silent and reserved; then all is over."""
    _suspended_and_drained(cluster)
    _requeued_and_down(cluster)
    _silent(cluster)
    _reserved(cluster)
    _in_maintenance(cluster)
    cluster.cancel_jobs()


def _lasts() -> None:
    time.sleep(LASTS_S)  # so that each state has a length in accounting


def _scontrol(cluster: LoopbackCluster, *words: str) -> None:
    cluster.run(["scontrol", *words])


def _unusable(cluster: LoopbackCluster, node: str, state: str) -> None:
    _scontrol(cluster, "update", f"nodename={node}", f"state={state}", "reason=fan")
    _lasts()


def _resume(cluster: LoopbackCluster, node: str) -> None:
    """Resume a node; one that slurmd has registered anew meanwhile is in service already, which scontrol says."""
    cluster.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False)
    _lasts()


def _runs(cluster: LoopbackCluster, node: str, gpus: int, reservation: str = "") -> int:
    options = {"reservation": reservation} if reservation else {}
    job = cluster.sbatch("sleep 600", "alice", gres=f"gpu:{gpus}", w=node, **options)
    cluster.wait_job(job, "RUNNING")
    _lasts()
    return job


def _cancelled(cluster: LoopbackCluster, *jobs: int) -> None:
    cluster.run(["scancel", *map(str, jobs)])
    for job in jobs:
        cluster.wait_accounted(job)


def _suspended_and_drained(cluster: LoopbackCluster) -> None:
    """Drain a node while a run is suspended there; its event begins when the run has ended. Others wait meanwhile."""
    job = _runs(cluster, "gpu1", 3)
    waiting = cluster.sbatch("sleep 600", gres="gpu:4", w="gpu1")
    held = cluster.sbatch("sleep 600", gres="gpu:1", hold=True)
    _scontrol(cluster, "suspend", str(job))
    _lasts()
    _scontrol(cluster, "resume", str(job))
    _unusable(cluster, "gpu1", "drain")
    _cancelled(cluster, job, waiting, held)
    wait_until(lambda: cluster.node_states()["gpu1"] == "drained", 30, "gpu1 to be drained")
    _lasts()
    _resume(cluster, "gpu1")


def _requeued_and_down(cluster: LoopbackCluster) -> None:
    """Requeue a run by hand, then by a failure of its node; each run is a row of accounting."""
    job = _runs(cluster, "gpu2", 2)
    _scontrol(cluster, "requeue", str(job))
    cluster.wait_job(job, "RUNNING")
    _lasts()
    _unusable(cluster, "gpu2", "down")
    _resume(cluster, "gpu2")
    cluster.wait_job(job, "RUNNING")
    _cancelled(cluster, job)


def _silent(cluster: LoopbackCluster) -> None:
    """Stop slurmd under a run: slurmctld ends the run when it gives up on the node."""
    job = _runs(cluster, "gpu1", 1)
    _scontrol(cluster, "update", f"jobid={job}", "requeue=0")
    cluster.stop_slurmd("gpu1")
    cluster.wait_job(job, "NODE_FAIL", 90)
    _lasts()
    cluster.restart_slurmd("gpu1")


def _reserved(cluster: LoopbackCluster) -> None:
    """Run a job in a reservation and one beside it."""
    words = ["reservationname=course", "starttime=now", "duration=10", "users=alice", "nodes=gpu1"]
    _scontrol(cluster, "create", "reservation", *words)
    _lasts()
    inside = _runs(cluster, "gpu1", 3, reservation="course")
    outside = _runs(cluster, "gpu2", 1)
    _cancelled(cluster, inside, outside)
    _scontrol(cluster, "delete", "reservationname=course")


def _in_maintenance(cluster: LoopbackCluster) -> None:
    """Reserve a node for maintenance and set it down meanwhile."""
    words = ["reservationname=fan", "starttime=now", "duration=10", "flags=maint,ignore_jobs", "users=root"]
    _scontrol(cluster, "create", "reservation", *words, "nodes=gpu2")
    wait_until(lambda: "maint" in cluster.node_states()["gpu2"], 60, "gpu2 to be in maintenance")
    _unusable(cluster, "gpu2", "down")
    _resume(cluster, "gpu2")
    _scontrol(cluster, "delete", "reservationname=fan")
    cluster.wait_nodes_idle(60)
