"""The softer steps of a ladder on a real slurmctld: a lower request, a checkpoint, fewer nodes, back to the queue."""

import re
import time
from collections.abc import Callable, Iterator

import pytest
from tests.system.actor_scene import ActorScene, actor_scene, running

from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
Taken = Callable[..., tuple[str, str]]
TRAP = "trap 'echo saved' USR1\nwhile true; do sleep 0.2; done"


@pytest.fixture
def scene(cluster: LoopbackCluster) -> Iterator[ActorScene]:
    """Return a hub on the cluster, which has no jobs before and after."""
    with actor_scene(cluster) as found:
        yield found


def waiting(scene: ActorScene, **options: str | int) -> int:
    """Submit a job that waits for an hour."""
    return scene.cluster.sbatch("sleep 1", user="alice", **{"partition": "gpu", "begin": "now+1hour", **options})


def gpus_of(job: RunningJob) -> int:
    found = re.search(r"gres/gpu=(\d+)", job.req_tres)
    return int(found[1]) if found else 0


@pytest.fixture
def taken(scene: ActorScene) -> Taken:
    """Return a function that has one action taken, and returns how it ended and why."""
    actor = scene.poller()

    def take(kind: str, job: int | str, options: dict[str, str] | None = None) -> tuple[str, str]:
        return scene.turns(actor, scene.intend(kind, job, options))

    return take


@pytest.mark.core
def test_a_request_is_lowered_and_its_old_values_are_named(scene: ActorScene, taken: Taken) -> None:
    """GPUs with and without a type, per node and per job, limit and memory; each old value is in the answer."""
    wanted = {"gpus": "2", "time_limit": "30", "memory": "200M"}
    one = waiting(scene, gres="gpu:a100:4", mem="1000M", time="60")
    status, reason = taken("lower_request", one, wanted)
    assert status == "confirmed", reason
    found = scene.run_of(one)
    assert (gpus_of(found), found.time_limit_s, found.memory_node_b) == (2, 1800, 200 << 20)
    assert f"scontrol update JobId={one} TimeLimit=01:00:00 TresPerNode=gres" in reason
    assert "gpu:a100:4 MinMemoryNode=1000" in reason
    undo = reason.partition("to undo it: ")[2].split()
    scene.cluster.run(undo)
    back = scene.run_of(one)
    assert (gpus_of(back), back.time_limit_s, back.memory_node_b) == (4, 3600, 1000 << 20)
    by_job = waiting(scene, gpus="4", time="60")
    assert taken("lower_request", by_job, {"gpus": "1"})[0] == "confirmed"
    assert gpus_of(scene.run_of(by_job)) == 1
    by_node = waiting(scene, nodes=2, time="60", **{"gpus-per-node": "4"})
    assert taken("lower_request", by_node, {"gpus": "4"})[0] == "confirmed"
    assert gpus_of(scene.run_of(by_node)) == 4


@pytest.mark.core
def test_no_request_is_raised_and_none_guessed(scene: ActorScene, taken: Taken) -> None:
    """A smaller request, one per task, and a job that runs are left as they are, each with the reason."""
    small = waiting(scene, gres="gpu:1", mem="100M", time="10")
    before = scene.run_of(small)
    status, reason = taken("lower_request", small, {"gpus": "2", "time_limit": "30", "memory": "1G"})
    assert (status, reason) == ("moot", "nothing to lower: the request is not larger")
    after = scene.run_of(small)
    assert (after.req_tres, after.time_limit_s) == (before.req_tres, before.time_limit_s)
    by_task = waiting(scene, ntasks=4, time="10", **{"gpus-per-task": "1"})
    status, reason = taken("lower_request", by_task, {"gpus": "1", "memory": "1M"})
    assert status == "moot"
    assert "GPUs requested as TresPerTask=gres" in reason
    assert "the job requests no memory per node" in reason
    status, reason = taken("lower_request", running(scene), {"gpus": "1"})
    assert (status, reason) == ("moot", "the job is RUNNING: only a waiting request can be lowered")


def test_what_waits_of_an_array_is_lowered(scene: ActorScene, taken: Taken) -> None:
    """Its pending tasks are one record of slurmctld."""
    array = waiting(scene, gres="gpu:4", time="60", array="0-2")
    status, reason = taken("lower_request", array, {"gpus": "1", "time_limit": "20"})
    assert status == "confirmed", reason
    found = scene.run_of(array)
    assert (gpus_of(found), found.time_limit_s) == (1, 1200)


@pytest.mark.core
def test_a_checkpoint_is_asked_of_whoever_requested_a_signal(scene: ActorScene, taken: Taken) -> None:
    """By #SBATCH line and by name; a job without --signal gets none, unless the rule names one."""
    job = running(scene, f"#SBATCH --signal=B:SIGUSR1@60\n{TRAP}")
    status, reason = taken("checkpoint", job)
    assert status == "confirmed", reason
    wait_until(lambda: "saved" in scene.cluster.job_output(job), 20, "the signal", lambda: "")
    assert scene.run_of(job).state == "RUNNING"
    without = running(scene, TRAP)
    assert taken("checkpoint", without) == ("moot", "the job did not request a signal (sbatch --signal)")
    assert "saved" not in scene.cluster.job_output(without)
    assert taken("checkpoint", without, {"signal": "USR1"})[0] == "confirmed"
    wait_until(lambda: "saved" in scene.cluster.job_output(without), 20, "the signal", lambda: "")
    odd = running(scene, "#SBATCH --signal=KILL\nsleep 300")
    status, reason = taken("checkpoint", odd)
    assert (status, reason.partition(":")[0]) == ("moot", "the job requested signal 'KILL'")
    assert scene.run_of(odd).state == "RUNNING"


def two_nodes(scene: ActorScene, script: str = "sleep 300") -> int:
    return running(scene, script, partition="gpu", nodes=2, ntasks=2, gres="gpu:2")


@pytest.mark.core
def test_idle_nodes_are_released(scene: ActorScene, taken: Taken) -> None:
    """The run goes on with the node of its batch script, whatever the hub names, and the GPUs are free."""
    job = two_nodes(scene)
    first, second = sorted(scene.run_of(job).nodes)
    status, reason = taken("shrink", job, {"nodes": f"{first},{second},gpu99"})
    assert (status, reason) == ("confirmed", f"the run has 1 nodes: {first}")
    left = scene.run_of(job)
    assert (left.state, sorted(left.nodes)) == ("RUNNING", [first])
    other = scene.cluster.sbatch("sleep 1", user="bob", partition="gpu", gres="gpu:4", nodelist=second, time="1")
    scene.cluster.wait_job(other, "COMPLETED")


@pytest.mark.core
def test_a_node_at_work_is_not_released(scene: ActorScene, taken: Taken) -> None:
    """Where a step runs, the only node, and nodes of others stay; with steps = kill Slurm ends the step's tasks."""
    job = two_nodes(scene, "srun --overlap sleep 300")
    first, second = sorted(scene.run_of(job).nodes)

    def steps() -> str:
        return scene.cluster.run(["squeue", "--steps", "-h", f"--jobs={job}", "-o", "%i"]).stdout

    wait_until(lambda: f"{job}.0" in steps(), 20, "the step", steps)
    status, reason = taken("shrink", job, {"nodes": second})
    assert (status, reason) == ("moot", f"step {job}.0 runs on {second}: Slurm would kill its tasks there")
    for nodes in (first, "none", "unknown", "gpu99"):
        status, reason = taken("shrink", job, {"nodes": nodes})
        assert (status, reason) == ("moot", f"none of the idle nodes can be released: the run keeps {first}")
    assert len(scene.run_of(job).nodes) == 2
    assert taken("shrink", job, {"nodes": second, "steps": "kill"})[0] == "confirmed"
    assert sorted(scene.run_of(job).nodes) == [first]


def test_a_job_goes_back_to_the_queue_once(scene: ActorScene, taken: Taken) -> None:
    """Held, its user can release it; with at_most = 1 it is not requeued again."""
    job = running(scene)
    assert taken("requeue", job, {"hold": "yes", "at_most": "1"})[0] == "confirmed"
    wait_until(lambda: scene.run_of(job).state == "PENDING", 60, "the queue", lambda: str(scene.run_of(job)))
    assert scene.run_of(job).priority == 0
    scene.cluster.run(["scontrol", "release", str(job)], "alice")
    scene.cluster.wait_job(job, "RUNNING")
    again = scene.run_of(job).start or 0
    wait_until(lambda: time.time() >= again + 1, 10, "a second of the run", lambda: "", poll_s=0.1)
    status, reason = taken("requeue", job, {"hold": "yes", "at_most": "1"})
    assert (status, reason) == ("moot", "the job has been requeued 1 times: at_most is 1")
