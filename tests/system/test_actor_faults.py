"""Actions and faults on a real slurmctld: what is not known is told, nothing is done twice, a stop stops."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from tests.system.actor_scene import ActorScene, actor_scene, running, stand_in

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionLent, ActionTaken, Outcome
from gpuwaste.actor.action_executor import ActionQueue, HubActionQueue
from gpuwaste.core.errors import RetryableWireError, StoreError
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.cluster import LoopbackCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


@pytest.fixture
def scene(cluster: LoopbackCluster) -> Iterator[ActorScene]:
    """Return a hub on the cluster, which has no jobs before and after."""
    with actor_scene(cluster) as found:
        yield found


def test_slurm_that_says_yes_and_does_nothing(scene: ActorScene) -> None:
    """The action has failed with that reason, and is not sent again."""
    job = running(scene)
    action = scene.intend("cancel", job)
    path = stand_in(scene.directory, "scancel", f"echo x >> {scene.directory}/asked; exit 0")
    poller = scene.poller(path=path, confirm_s=2.0)
    poller.turn()
    poller.turn()
    status, reason = scene.end(action)
    assert status == "failed"
    assert "Slurm accepted the command; no effect in Slurm after 2 s" in reason
    assert (scene.directory / "asked").read_text() == "x\n"
    assert scene.run_of(job).state == "RUNNING"


def test_slurm_that_says_no(scene: ActorScene) -> None:
    """A refusal is told in Slurm's words at once."""
    job = running(scene)
    action = scene.intend("cancel", job)
    path = stand_in(scene.directory, "scancel", "echo 'scancel: error: Access/permission denied' >&2; exit 1")
    scene.poller(path=path).turn()
    status, reason = scene.end(action)
    assert status == "failed"
    assert "Access/permission denied" in reason


def test_a_command_that_hangs_after_it_has_done_its_work(scene: ActorScene) -> None:
    """Slurm's answer never comes: the look finds the run cancelled."""
    job = running(scene)
    action = scene.intend("cancel", job)
    path = stand_in(scene.directory, "scancel", '$REAL "$@"; sleep 60')
    scene.poller(path=path, timeout_s=4.0).turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)


def test_a_signal_without_an_answer_is_not_sent_again(scene: ActorScene) -> None:
    """Nobody can see whether the job got the signal: the action has failed, and says so."""
    job = running(scene)
    action = scene.intend("signal", job)
    path = stand_in(scene.directory, "scancel", f"echo x >> {scene.directory}/asked; sleep 60")
    poller = scene.poller(path=path, timeout_s=4.0)
    poller.turn()
    poller.turn()
    status, reason = scene.end(action)
    assert status == "failed"
    assert "unknown whether Slurm accepted it" in reason
    assert (scene.directory / "asked").read_text() == "x\n"


def test_slurmctld_down_and_hanging(scene: ActorScene) -> None:
    """While slurmctld does not answer the action waits, nothing is noted as sent; then it is done."""
    job = running(scene, job_name="before.the.kill")
    scene.cluster.wait_saved("before.the.kill")  # or the next job has its number, and dies of what this one gets
    action = scene.intend("cancel", job)
    poller = scene.poller(timeout_s=2.0)
    pid = scene.cluster.processes["slurmctld"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        poller.turn()
        assert scene.row(action).status == "intended"
    finally:
        os.kill(pid, signal.SIGCONT)
    scene.cluster.processes["slurmctld"].kill()
    poller.turn()
    assert scene.row(action).status == "intended"
    scene.cluster.start_daemons(fresh=False)
    assert scene.turns(poller, action)[0] in {"confirmed", "moot"}, scene.end(action)


def test_what_waits_for_a_person(scene: ActorScene) -> None:
    """An action with approve = "person" is not lent before an operator approves it, and never after a refusal."""
    job = running(scene)
    action = scene.intend("cancel", job, approve="person")
    refused = scene.intend("comment", job, {"text": "x"}, approve="person")
    poller = scene.poller()
    poller.turn()
    assert scene.row(action).status == scene.row(refused).status == "intended"
    done = scene.gpuwaste("approve", action[:12], user="alice")
    assert done.returncode == 1
    assert "Operator or Administrator" in done.stderr
    assert scene.gpuwaste("approve", action[:12], user="gpuwaste").returncode == 0
    assert scene.gpuwaste("refuse", refused[:12], user="gpuwaste").returncode == 0
    assert "is refused" in scene.gpuwaste("approve", refused[:12], user="gpuwaste").stderr
    poller.turn()
    poller.turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)
    assert scene.row(action).person == "gpuwaste"
    assert scene.row(refused).status == "refused"
    shown = scene.gpuwaste("actions", action[:12], user="gpuwaste")
    assert "confirmed" in shown.stdout
    assert "idle_s" in shown.stdout
    listed = scene.gpuwaste("actions", user="gpuwaste")
    assert listed.returncode == 0
    assert action[:12] in listed.stdout


def test_a_stop_ends_all_acting(scene: ActorScene) -> None:
    """Stopped at the hub or by the file nothing is sent; after a lift of both it is. The file works without the hub."""
    job = running(scene)
    action = scene.intend("cancel", job)
    poller = scene.poller()
    stopped = scene.gpuwaste("stop", user="root")
    assert stopped.returncode == 0, stopped.stderr
    assert scene.stop_file.exists()
    poller.turn()
    assert poller.counters.stopped
    scene.stop_file.unlink()
    poller.turn()
    assert scene.row(action).status == "intended"
    assert scene.gpuwaste("resume", user="root").returncode == 0
    assert scene.gpuwaste("stop", user="root", hub=False).returncode == 0
    poller.turn()
    assert scene.row(action).status == "intended"
    assert scene.gpuwaste("resume", user="root", hub=False).returncode == 1
    assert scene.gpuwaste("resume", user="root").returncode == 0
    poller.turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)


def test_two_actors(scene: ActorScene) -> None:
    """Only the one that holds the lease gets actions; a second one with the same journal does not even start."""
    first, second = scene.poller("first"), scene.poller("second")
    first.turn()
    action = scene.intend("cancel", running(scene))
    second.turn()
    assert not second.counters.leased
    assert scene.row(action).status == "intended"
    first.turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)
    with pytest.raises(StoreError, match="is another actor running"):
        scene.poller("first")


def test_an_actor_that_lost_the_lease_changes_nothing(scene: ActorScene) -> None:
    """A report of an actor that another one has followed is not taken."""
    action = scene.intend("cancel", running(scene))
    assert scene.queue("first").claim(["cancel"]).action
    scene.hub.get(ActionParts).store.lease("first", -1)
    scene.poller("second").turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)
    late = scene.queue("first").report(action, "sent", plan={})
    assert not late.taken
    assert late.reason == "actor second holds the lease"


@pytest.mark.parametrize(
    ("settings", "expires_s", "end"),
    [
        ({}, -1, ("expired", "no actor took the action in time")),
        ({"exempt_accounts": frozenset({"proj1"})}, 60, ("moot", "account proj1 is exempt: [actor] exempt_accounts")),
        ({"exempt_users": frozenset({"alice"})}, 60, ("moot", "user alice is exempt: [actor] exempt_users")),
        ({"kinds": ("comment",)}, 60, ("intended", "")),
        ({"max_per_hour": 0}, 60, ("intended", "")),
    ],
)
def test_what_is_never_sent(scene: ActorScene, settings: dict[str, Any], expires_s: int, end: tuple[str, str]) -> None:
    """Too late, an exempt account or user, a kind that is not permitted, over the rate: the run is left alone."""
    job = running(scene)
    action = scene.intend("cancel", job, expires_s=expires_s)
    scene.poller(**settings).turn()
    assert scene.end(action) == end
    assert scene.row(action).sends == 0
    assert scene.run_of(job).state == "RUNNING"


def test_the_hub_keeps_the_rate_of_all_actors(scene: ActorScene) -> None:
    """After max_per_hour actions the hub lends none, whoever asks."""
    scene.hub.get(ActionParts).manager.max_per_hour = 1
    job = running(scene)
    first, second = (scene.intend("comment", job, {"text": text}) for text in ("a", "b"))
    poller = scene.poller()
    poller.turn()
    poller.turn()
    assert {scene.row(first).status, scene.row(second).status} == {"confirmed", "intended"}


def test_clocks_that_differ(scene: ActorScene) -> None:
    """An actor whose clock is an hour off takes nothing."""
    action = scene.intend("cancel", running(scene))
    clock = ShiftedClock()
    clock.later_s = -3600
    poller = scene.poller(clock=clock)
    poller.turn()
    assert poller.counters.troubles["clock"] == 1
    assert scene.row(action).status == "intended"


class CutOrders:
    """The hub behind a line that breaks before the end of an action is told, until it is mended."""

    def __init__(self, queue: ActionQueue) -> None:
        self.queue = queue
        self.broken = True

    def claim(self, kinds: Sequence[str]) -> ActionLent:
        """Pass it on."""
        return self.queue.claim(kinds)

    def report(
        self, action: str, status: Outcome, *, reason: str = "", answer: str = "", plan: Mapping[str, str] | None = None
    ) -> ActionTaken:
        """Pass on what is about to be sent."""
        if status != "sent" and self.broken:
            raise RetryableWireError("no hub")
        return self.queue.report(action, status, reason=reason, answer=answer, plan=plan)


def test_hub_down(scene: ActorScene) -> None:
    """An end that cannot be told is kept and told later; no other action is taken meanwhile."""
    job = running(scene)
    action = scene.intend("cancel", job)
    queue = CutOrders(scene.queue())
    poller = scene.poller(queue=queue)
    poller.turn()
    other = scene.intend("comment", job, {"text": "x"})
    poller.turn()
    assert scene.row(action).status == "sent"
    assert scene.row(other).status == "intended"
    queue.broken = False
    poller.turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)


def test_a_hub_that_was_restored(scene: ActorScene) -> None:
    """A hub that has forgotten that a signal was sent lends it again: the actor's own journal keeps it from that."""
    job = running(scene, "trap 'echo got' USR1\nwhile true; do sleep 0.2; done")
    action = scene.intend("signal", job)
    poller = scene.poller()
    poller.turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)
    with scene.hub.store.writing() as db:
        db.execute("UPDATE actions SET status = 'intended', plan = '{}', sends = 0")
    poller.turn()
    assert scene.row(action).sends == 0
    assert scene.row(action).status == "failed"


def test_an_answer_that_is_not_the_hubs(scene: ActorScene) -> None:
    """An answer without the hub's signature is no order: whoever takes the hub's port while it is down gives none."""
    issuer = MungeIssuer(Munge(str(scene.cluster.munge_socket)), hub_uid=12345)
    queue = HubActionQueue(HubClient(f"http://127.0.0.1:{scene.port}", issuer), "here")
    action = scene.intend("cancel", running(scene))
    poller = scene.poller(queue=queue)
    poller.turn()
    assert poller.counters.troubles["hub"] == 1
    assert scene.row(action).status == "intended"


def test_only_the_actors_user_is_lent_anything(scene: ActorScene) -> None:
    """The hub answers 403 to a claim of any other uid, Operators included."""
    script = (
        "from gpuwaste.net.hub_client import HubClient; from gpuwaste.net.munge_credentials import Munge, MungeIssuer;"
        f"c = HubClient('http://127.0.0.1:{scene.port}', MungeIssuer(Munge('{scene.cluster.munge_socket}')));"
        "c.post('/v1/actions/claim', {'actor': 'x', 'kinds': ['cancel']})"
    )
    done = scene.python("-c", script, user="gpuwaste")
    assert done.returncode == 1
    assert "is not the actor" in done.stderr
