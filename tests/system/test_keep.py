"""Keeps on a real slurmctld: real HTTP, munge and commands; what they stop, and what comes too late."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.system.actor_scene import ActorScene, actor_scene, running, stand_in

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionLent, ActionTaken, Outcome
from gpuwaste.actor.action_executor import HubActionQueue
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.runtime import shared_runtime

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


class KeptMeanwhile:
    """The hub as an actor asks it, where something happens before each action is noted as sent."""

    def __init__(self, queue: HubActionQueue, then: Callable[[], None]) -> None:
        self._queue, self._then = queue, then

    def claim(self, kinds: Sequence[str]) -> ActionLent:
        """Claim."""
        return self._queue.claim(kinds)

    def report(self, action: str, status: Outcome, **more: Any) -> ActionTaken:
        """Report, once the other thing has happened."""
        if status == "sent":
            self._then()
        return self._queue.report(action, status, **more)


@pytest.fixture
def scene(cluster: LoopbackCluster) -> Iterator[ActorScene]:
    """Return a hub on the cluster, which has no jobs before and after."""
    with actor_scene(cluster) as found:
        yield found


def known(scene: ActorScene, script: str = "sleep 300") -> int:
    """Return a running job of alice's that the hub has read from accounting."""
    job = running(scene, script)
    importer = scene.hub.get(Importer)

    def read() -> bool:
        importer.step()
        with scene.hub.store.reader() as db:
            return bool(db.execute("SELECT 1 FROM jobs WHERE job_id = ?", [job]).fetchall())

    wait_until(read, 60, f"job {job} in the hub's store", lambda: "", poll_s=1.0)
    return job


def keep(scene: ActorScene, job: int, user: str, span: str = "1h") -> tuple[int, str, str]:
    """Run `gpuwaste keep` as a user; return exit code, output and errors."""
    config = scene.directory / "keep.toml"
    common = {"hub_url": f"http://127.0.0.1:{scene.port}", "munge_socket": str(scene.cluster.munge_socket)}
    config.write_text(to_toml({"common": common}))
    config.chmod(0o644)
    runtime = shared_runtime(Path(scene.cluster.directory) / "site" / "runtime")
    words = ("keep", str(job), "--for", span, "--reason", "it waits for data", "--config", str(config))
    done = scene.cluster.run(runtime.command(*words), user, env=runtime.env, check=False, timeout_s=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.core
def test_a_keep_between_approval_and_lending_stops_the_cancel(scene: ActorScene) -> None:
    """The owner's command drops the approved cancel; bob's finds no such job; the job runs on."""
    job = known(scene)
    action = scene.intend("cancel", job, approve="person")
    assert scene.hub.get(ActionParts).manager.decide(scene.row(action), "oper", approve=True)
    code, _, error = keep(scene, job, "bob")
    assert (code, f"job {job}: not found, or not visible to you" in error) == (3, True)
    assert scene.row(action).status == "approved"
    code, output, error = keep(scene, job, "alice")
    assert code == 0, error
    assert "rules wait until" in output
    assert "1 action that waited: dropped" in output
    scene.poller().turn()
    status, reason = scene.end(action)
    assert (status, "by alice: it waits for data" in reason) == ("moot", True)
    assert scene.run_of(job).state == "RUNNING"
    assert scene.events()[-1] == "action.moot"


def test_a_keep_between_lending_and_sending_stops_the_cancel(scene: ActorScene) -> None:
    """The actor has looked at the job already; the hub does not note the cancel as sent, and scancel is not run."""
    job = known(scene)
    action = scene.intend("cancel", job)
    marker = scene.directory / "scancel-ran"
    path = stand_in(scene.directory, "scancel", f'touch {marker}\nexec $REAL "$@"')
    said: list[tuple[int, str, str]] = []
    queue = KeptMeanwhile(scene.queue(), lambda: said.append(keep(scene, job, "alice")))
    poller = scene.poller(path=path, queue=queue)
    poller.turn()
    assert said[0][0] == 0, said
    assert scene.row(action).status == "moot"
    assert not marker.exists()
    assert scene.run_of(job).state == "RUNNING"


def test_a_keep_after_the_sending_is_too_late_and_says_so(scene: ActorScene) -> None:
    """While scancel is under way: the command says when the cancel was sent, records nothing, and the job ends."""
    job = known(scene)
    action = scene.intend("cancel", job)
    go, here = scene.directory / "go", scene.directory / "here"
    wait = f'touch {here}\nfor n in $(seq 200); do [ -e {go} ] && break; sleep 0.1; done\nexec $REAL "$@"'
    poller = scene.poller(path=stand_in(scene.directory, "scancel", wait), timeout_s=60.0)
    thread = threading.Thread(target=poller.turn)
    thread.start()
    try:
        wait_until(here.exists, 60, "scancel", lambda: str(scene.row(action)), poll_s=0.1)
        code, output, error = keep(scene, job, "alice")
    finally:
        go.touch()
        thread.join(60)
    assert (code, output) == (1, "")
    assert f"too late: job {job}: cancel was sent at {time.strftime('%Y', time.gmtime())}" in error
    assert scene.turns(poller, action)[0] == "confirmed"
    with scene.hub.store.reader() as db:
        assert db.execute("SELECT count(*) FROM keeps").fetchall() == [(0,)]


def test_a_keep_of_a_run_does_not_cover_the_next_run_of_its_id(scene: ActorScene) -> None:
    """The job is requeued and starts again: the cancel of its new run is done."""
    job = known(scene)
    assert keep(scene, job, "alice")[0] == 0
    first = scene.run_of(job).start
    scene.cluster.run(["scontrol", "requeue", str(job)])
    wait_until(
        lambda: scene.run_of(job).state == "RUNNING" and scene.run_of(job).start != first, 200, "the next run",
        lambda: json.dumps(str(scene.run_of(job))), poll_s=1.0,
    )  # fmt: skip
    action = scene.intend("cancel", job)
    scene.poller().turn()
    assert scene.end(action)[0] == "confirmed", scene.end(action)
