"""Actions that programs of the site do, on a real slurmctld: only on what is meant, once, and bounded in time."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.actor_scene import ActorScene, actor_scene, running

from gpuwaste.actor.action_poller import ActionPoller
from gpuwaste.actor.actor_settings import SitePrograms
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NODE = "cpu1"
CASCADE = """
set -eu
file=$(mktemp)
trap 'rm -f "$file"' EXIT
scontrol write batch_script "$1" "$file" > /dev/null
ids= after=
for number in $(seq "$4"); do
    id=$(sbatch --parsable --hold --uid="$2" --export=NONE --partition=cpu --chdir=/tmp --output=/dev/null \\
        --time="$3" --signal=B:USR1@300 $after "$file") || { scancel $ids; exit 1; }
    ids="$ids $id" after="--dependency=afterany:$id"
done
scancel "$1"
for id in $ids; do scontrol release "$id"; done
echo "jobs$ids"
"""


@pytest.fixture
def scene(cluster: LoopbackCluster) -> Iterator[ActorScene]:
    """Return a hub on the cluster, which has no jobs before and after."""
    with actor_scene(cluster) as found:
        yield found


def poller(scene: ActorScene, kind: str, script: str, *words: str, within_s: float = 60.0) -> ActionPoller:
    """Return an actor that may take one kind of action, by a program."""
    path = scene.directory / f"{kind}.sh"
    path.write_text(f'#!/bin/bash\necho "$@" >> {scene.directory}/asked\n{script}\n')
    path.chmod(0o755)
    programs = SitePrograms({kind: (str(path), *words)}, within_s, scene.slurm.slurm_conf)
    return scene.poller(kinds=(kind,), programs=programs)


def asked(scene: ActorScene) -> list[str]:
    """Return the words of each run of the program."""
    path = Path(scene.directory) / "asked"
    return path.read_text().splitlines() if path.exists() else []


def test_a_health_check_runs_on_a_drained_idle_node_alone(scene: ActorScene) -> None:
    """In service: moot, and nothing runs. Drained: the program gets the node's name, its last line is the answer."""
    actor = poller(scene, "health_check", "echo 'all GPUs pass'", "{node}")
    early = scene.add("health_check", subject=f"node/{NODE}")
    assert scene.turns(actor, early)[0] == "moot"
    assert asked(scene) == []
    scene.slurm.text("scontrol", "update", f"NodeName={NODE}", "State=DRAIN", "Reason=test")
    try:
        action = scene.add("health_check", subject=f"node/{NODE}")
        assert scene.turns(actor, action) == ("confirmed", "the program ended with exit code 0")
        assert scene.row(action).answer == "all GPUs pass"
        assert asked(scene) == [NODE]
    finally:
        scene.slurm.text("scontrol", "update", f"NodeName={NODE}", "State=RESUME")


def test_a_waiting_job_becomes_a_cascade(scene: ActorScene) -> None:
    """A job with a limit of ten hours that is held becomes three of four, each after the one before; its id is over."""
    job = scene.cluster.sbatch("sleep 1", user="alice", partition="cpu", time="600", hold=True)
    wait_until(lambda: scene.run_of(job).state == "PENDING", 20, "the job", lambda: "", poll_s=0.1)
    actor = poller(scene, "resubmit", CASCADE, "{job}", "{user}", "{part}", "{jobs}")
    action = scene.intend("resubmit", job, {"part": "4:00:00"})
    assert scene.turns(actor, action)[0] == "confirmed", scene.end(action)
    assert asked(scene) == [f"{job} alice 04:00:00 3"]
    parts = [one for one in scene.slurm.jobs() if one.user == "alice" and one.job_id > job]  # others left theirs before
    assert [one.time_limit_s for one in parts] == [4 * 3600] * 3
    assert scene.run_of(job).state == "CANCELLED"
    again = scene.add("resubmit", {"part": "4:00:00"}, subject=scene.row(action).subject, user="alice",
                      run=scene.row(action).run)  # fmt: skip
    assert scene.turns(actor, again)[0] == "moot"
    assert len(asked(scene)) == 1


def test_a_run_that_is_not_the_one_meant_is_not_profiled(scene: ActorScene) -> None:
    """Job id and user are right, the start is another run's: the program is not run; for the real run it is."""
    job = running(scene)
    actor = poller(scene, "profile", "exit 0", "{job}", "{user}", "{nodes}")
    run = scene.run_of(job)
    assert run.start is not None
    wrong = RunKey(scene.slurm.cluster_name(), job, run.start - 100)
    other = scene.add("profile", run=wrong, subject=str(wrong), user="alice")
    assert scene.turns(actor, other)[0] == "moot"
    assert asked(scene) == []
    action = scene.intend("profile", job)
    assert scene.turns(actor, action)[0] == "confirmed", scene.end(action)
    assert asked(scene) == [f"{job} alice {run.node_list}"]


def test_a_program_that_hangs_or_fails_is_told_and_not_run_again(scene: ActorScene) -> None:
    """After its time it is killed, and nobody knows; with an exit code its words are the reason. Each ran once."""
    job = running(scene)
    actor = poller(scene, "profile", "sleep 600", "{job}", within_s=2.0)
    action = scene.intend("profile", job)
    began = time.monotonic()
    status, reason = scene.turns(actor, action)
    assert time.monotonic() - began < 60
    assert (status, reason.startswith("unknown whether the program has done it: ")) == ("failed", True), reason
    assert len(asked(scene)) == 1
    scene.close()
    other = poller(scene, "profile", "echo 'no py-spy on the node' >&2; exit 4", "{job}")
    action = scene.intend("profile", job)
    status, reason = scene.turns(other, action)
    assert status == "failed"
    assert reason.endswith("exit code 4: no py-spy on the node")
    assert len(asked(scene)) == 2
