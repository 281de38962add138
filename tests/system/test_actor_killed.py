"""An actor of its own process and user, killed with -9 between Slurm's answer and ours: it looks, then acts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.actor_scene import ACTOR, ActorScene, actor_scene, running, stand_in

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


@pytest.fixture
def scene(cluster: LoopbackCluster) -> Iterator[ActorScene]:
    """Return a hub on the cluster that lends actions to the user who is Operator."""
    with actor_scene(cluster, ACTOR) as found:
        yield found


def _ended(scene: ActorScene, action: str) -> tuple[str, str]:
    def over() -> bool:
        return scene.row(action).status not in {"intended", "approved", "sent"}

    wait_until(over, 90, "the action's end", lambda: str(scene.row(action)), poll_s=0.2)
    return scene.end(action)


def _asked(scene: ActorScene) -> list[str]:
    """Return a line for each time that the stand-in for a command was run."""
    path = scene.directory / "asked"
    return path.read_text().splitlines() if path.exists() else []


def _wait_asked(scene: ActorScene, times: int) -> None:
    wait_until(lambda: len(_asked(scene)) == times, 30, "the stand-in", lambda: str(_asked(scene)))


def _stand_in(scene: ActorScene, script: str) -> str:
    asked = scene.directory / "asked"
    asked.touch()
    asked.chmod(0o666)
    return stand_in(scene.directory, "scancel", f'echo "$@" >> {asked}\n{script}')


def test_an_operator_and_what_takes_an_administrator(scene: ActorScene) -> None:
    """Slurm takes from an Operator all but comment and drain, which it refuses: as the catalogue says of each kind."""
    job = running(scene)
    waiting = scene.cluster.sbatch("sleep 1", user="alice", begin="now+1hour", partition="cpu")
    actor = scene.process()
    wanted: list[tuple[str, int, dict[str, str]]] = [
        ("extend_limit", job, {"by": "5", "at_most": "30"}),
        ("signal", job, {"signal": "CONT"}),
        ("hold", waiting, {}),
        ("release", waiting, {}),
        ("requeue", job, {"hold": "yes"}),
        ("cancel", waiting, {}),
    ]
    for kind, number, options in wanted:
        assert actions()[kind].needs == "operator"
        assert _ended(scene, scene.intend(kind, number, options))[0] == "confirmed", actor.tail()
    other = running(scene)
    refused = (scene.intend("comment", other, {"text": "a"}), scene.add("drain", {"reason": "x"}, subject="node/gpu1"))
    for action in refused:
        status, reason = _ended(scene, action)
        assert actions()[scene.row(action).kind].needs == "administrator"
        assert (status, "denied" in reason or "Invalid user" in reason) == ("failed", True), reason
    actor.stop()


def test_killed_after_slurm_has_done_it(scene: ActorScene) -> None:
    """Slurm has cancelled the run and its answer was never read: the next actor sees that and sends nothing."""
    job = running(scene)
    actor = scene.process(path=_stand_in(scene, '$REAL "$@"; sleep 300'))
    action = scene.intend("cancel", job)
    scene.cluster.wait_job(job)
    actor.kill()
    assert scene.row(action).status == "sent"
    assert len(_asked(scene)) == 1
    again = scene.process(path=str(scene.directory / "bin"))
    assert _ended(scene, action)[0] == "confirmed"
    assert len(_asked(scene)) == 1
    assert scene.row(action).sends == 1
    again.stop()


def test_killed_before_slurm_was_asked(scene: ActorScene) -> None:
    """Noted as sent, and Slurm never heard of it: the look shows the run, and the action is sent once more."""
    job = running(scene)
    actor = scene.process(path=_stand_in(scene, "sleep 300"))
    action = scene.intend("cancel", job)
    _wait_asked(scene, 1)
    actor.kill()
    _stand_in(scene, 'exec $REAL "$@"')
    again = scene.process(path=str(scene.directory / "bin"))
    assert _ended(scene, action)[0] == "confirmed"
    assert len(_asked(scene)) == 2
    assert scene.row(action).sends == 2
    again.stop()


def test_killed_again_and_again(scene: ActorScene) -> None:
    """An action that was sent twice and that Slurm does not show is given up."""
    job = running(scene)
    path = _stand_in(scene, "sleep 300")
    action = scene.intend("cancel", job)
    for times in (1, 2):
        actor = scene.process(path=path)
        _wait_asked(scene, times)
        actor.kill()
    again = scene.process(path=path)
    status, reason = _ended(scene, action)
    assert (status, reason) == ("failed", "sent 2 times without effect in Slurm")
    assert len(_asked(scene)) == 2
    assert scene.run_of(job).state == "RUNNING"
    again.stop()


def test_a_signal_is_never_sent_twice(scene: ActorScene) -> None:
    """Killed after Slurm's answer: nothing shows whether the signal was sent, so it is given up and that is told."""
    job = running(scene, "trap 'echo got' USR1\nwhile true; do sleep 0.2; done")
    actor = scene.process(path=_stand_in(scene, '$REAL "$@"; sleep 300'))
    action = scene.intend("signal", job)
    wait_until(lambda: "got" in scene.cluster.job_output(job), 60, "the signal", actor.tail)
    actor.kill()
    again = scene.process(path=str(scene.directory / "bin"))
    status, reason = _ended(scene, action)
    assert status == "failed"
    assert "unknown whether" in reason
    assert len(_asked(scene)) == 1
    assert scene.cluster.job_output(job).count("got") == 1
    again.stop()


def test_an_actor_without_actions_takes_none(scene: ActorScene, tmp_path: Path) -> None:
    """As installed the actor may take nothing: it says so and leaves every action."""
    del tmp_path
    job = running(scene)
    action = scene.intend("cancel", job)
    actor = scene.process(actions=[])
    actor.wait_for(lambda: scene.hub.get(ActionParts).store.holder() != "", 30, "the actor to poll the hub")
    assert "actor-idle" in actor.tail()
    assert scene.row(action).status == "intended"
    assert scene.run_of(job).state == "RUNNING"
    actor.stop()
