"""Actions on a real slurmctld: each kind does what it says to exactly the run that is meant, once, or to none."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.system.actor_scene import ActorScene, actor_scene, running, stand_in

from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


@pytest.fixture
def scene(cluster: LoopbackCluster) -> Iterator[ActorScene]:
    """Return a hub on the cluster, which has no jobs before and after."""
    with actor_scene(cluster) as found:
        yield found


@pytest.mark.core
def test_cancel_ends_exactly_its_run(scene: ActorScene) -> None:
    """Of an array's tasks, whose first one has the array's id, only the one that is meant is cancelled."""
    array = scene.cluster.sbatch("sleep 300", user="alice", partition="cpu", array="0-2", time="10")
    scene.cluster.wait_job(array, "RUNNING")
    first = next(job for job in scene.slurm.job(array) if job.job_id == array)
    action = scene.intend("cancel", f"{array}_{first.array_task_id}")
    scene.poller().turn()
    assert scene.row(action).status == "confirmed", scene.row(action)
    states = {job.array_task_id: job.state for job in scene.slurm.job(array)}
    assert states.pop(first.array_task_id) in {"CANCELLED", "COMPLETING"}
    assert set(states.values()) == {"RUNNING"}
    assert scene.events() == ["action.intended", "action.sent", "action.confirmed"]


@pytest.mark.core
def test_each_kind_on_a_run(scene: ActorScene) -> None:
    """Comment, signal, limit, hold, release and requeue are done, seen in Slurm, and confirmed."""
    taker = scene.poller()
    job = running(scene, "trap 'echo checkpoint' USR1\nwhile true; do sleep 0.2; done")
    wanted = [
        scene.intend("comment", job, {"text": "idle for 2 h, see your mail"}),
        scene.intend("comment", job, {"text": "second -- $(text) 'quoted'"}),
        scene.intend("extend_limit", job, {"by": "20", "at_most": "25"}),
        scene.intend("signal", job),
    ]
    for _ in wanted:
        taker.turn()
    assert [scene.row(action).status for action in wanted] == ["confirmed"] * 4, [scene.end(a) for a in wanted]
    shown = scene.cluster.run(["scontrol", "show", "job", str(job)]).stdout
    assert "TimeLimit=00:25:00" in shown
    comment = scene.cluster.run(["squeue", "-h", f"--jobs={job}", "-O", "admin_comment:500"]).stdout.strip()
    assert sorted(comment.split(";")) == ["idle for 2 h, see your mail", "second -- $(text) 'quoted'"]
    wait_until(lambda: "checkpoint" in scene.cluster.job_output(job), 20, "the signal", lambda: "")
    action = scene.intend("requeue", job, {"hold": "yes"})
    taker.turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)
    waiting = scene.cluster.sbatch("sleep 1", user="alice", begin="now+1hour", partition="cpu")
    for kind, held in (("hold", True), ("release", False)):
        action = scene.intend(kind, waiting)
        taker.turn()
        assert scene.end(action)[0] == "confirmed", scene.end(action)
        assert (scene.run_of(waiting).priority == 0) is held
    action = scene.intend("cancel", waiting)
    taker.turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)


def test_the_waiting_part_of_an_array_gets_a_comment(scene: ActorScene) -> None:
    """Its tasks are one record of slurmctld until they start, named 8_[0-2]."""
    array = scene.cluster.sbatch("sleep 1", user="alice", begin="now+1hour", partition="cpu", array="0-2")
    action = scene.intend("comment", array, {"text": "its tasks fail"})
    scene.poller().turn()
    assert scene.end(action)[0] == "confirmed", (scene.row(action), scene.end(action))
    shown = scene.cluster.run(["squeue", "-h", f"--jobs={array}", "-O", "admin_comment:100"]).stdout.split("\n")
    assert shown[0].strip() == "its tasks fail"


def test_a_held_array_keeps_its_running_tasks(scene: ActorScene) -> None:
    """Holding what waits of an array leaves the tasks that run alone."""
    array = scene.cluster.sbatch("sleep 300", user="alice", partition="cpu", array="0-9%2", time="10")
    scene.cluster.wait_job(f"{array}_0", "RUNNING")
    rest = next(job for job in scene.slurm.job(array) if job.state == "PENDING")
    assert rest.submit is not None
    run = RunKey(scene.slurm.cluster_name(), rest.job_id, rest.submit)
    action = scene.add("hold", run=run, subject=str(run), user="alice", account="proj1")
    scene.poller().turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)
    jobs = scene.slurm.job(array)
    assert {job.state for job in jobs} == {"PENDING", "RUNNING"}
    assert [job.priority for job in jobs if job.state == "PENDING"] == [0]
    assert all(job.priority for job in jobs if job.state == "RUNNING")


def test_drain_needs_the_node_by_its_name(scene: ActorScene) -> None:
    """A node is drained with the rule's reason; a hostlist and an unknown name drain nothing."""
    reason = {"reason": "Xid 79 three times; text with 'quotes' and State=DOWN"}
    good = scene.add("drain", reason, subject="node/cpu1")
    taker = scene.poller()
    try:
        taker.turn()
        assert scene.end(good)[0] == "confirmed", scene.end(good)
        shown = scene.cluster.run(["scontrol", "show", "node", "cpu1"]).stdout
    finally:
        scene.cluster.run(["scontrol", "update", "NodeName=cpu1", "State=RESUME"], check=False)
    assert "DRAIN" in shown
    assert "Reason=gpuwaste: Xid 79 three times; text with 'quotes' and State=DOWN" in shown
    for node in ("gpu[1-2]", "ALL", "nosuch"):
        action = scene.add("drain", reason, subject=f"node/{node}")
        taker.turn()
        assert scene.end(action)[0] == "moot", scene.end(action)
    assert "DRAIN" not in scene.cluster.run(["scontrol", "show", "node", "gpu1"]).stdout


def test_a_run_that_is_not_the_one_meant_is_left_alone(scene: ActorScene) -> None:
    """Requeued with the same id, ended, of another user, of another start or cluster: moot, and Slurm is not asked."""
    taker = scene.poller()
    job = running(scene)
    requeued = scene.intend("cancel", job)
    scene.cluster.run(["scontrol", "requeue", str(job)])
    wait_until(lambda: scene.run_of(job).state == "PENDING", 30, "the requeue", lambda: "")
    taker.turn()
    assert scene.end(requeued)[0] == "moot", scene.end(requeued)
    assert scene.run_of(job).state == "PENDING"

    other = running(scene)
    record = scene.run_of(other)
    assert record.start
    run = RunKey(scene.slurm.cluster_name(), other, record.start)
    for wrong, user in (
        (replace(run, start=run.start - 3600), "alice"),
        (run, "bob"),
        (replace(run, cluster="x"), "alice"),
    ):
        action = scene.add("cancel", run=wrong, subject=str(wrong), user=user)
        taker.turn()
        assert scene.end(action)[0] == "moot", scene.end(action)
    assert scene.run_of(other).state == "RUNNING"

    ended = scene.intend("cancel", other)
    scene.cluster.run(["scancel", str(other)])
    scene.cluster.wait_job(other)
    taker.turn()
    assert scene.end(ended)[0] == "moot", scene.end(ended)
    assert scene.row(ended).sends == 0
    unknown = replace(run, job_id=999_999)
    action = scene.add("cancel", run=unknown, subject=str(unknown), user="alice")
    taker.turn()
    assert scene.end(action) == ("moot", "slurmctld no longer has the job")


def test_a_job_requeued_after_the_look_is_not_cancelled(scene: ActorScene) -> None:
    """Between look and scancel the job is requeued: scancel's own filters leave the new run alone."""
    job = running(scene)
    action = scene.intend("cancel", job)
    path = stand_in(scene.directory, "scancel", f'scontrol requeue {job}\nexec $REAL "$@"')
    scene.poller(path=path).turn()
    wait_until(lambda: scene.run_of(job).state == "PENDING", 30, "the requeue", lambda: "")
    assert scene.end(action)[0] == "moot", scene.end(action)
