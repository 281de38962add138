"""A hub and an actor on a real cluster: real HTTP, munge, store and slurmctld; a test intends what a rule would."""

import contextlib
import pwd
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.actions.action_types import ActionEntry, Approval, action_id
from gpuwaste.act.events.event_service import EventService
from gpuwaste.actor.action_executor import ActionQueue, HubActionQueue
from gpuwaste.actor.action_journal import ActionJournal
from gpuwaste.actor.action_poller import ActionPoller
from gpuwaste.actor.actor_settings import ActorSettings
from gpuwaste.core.act_config import ActorConfig
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.core.site_config import CommonConfig
from gpuwaste.hub.hub import Hub
from gpuwaste.hub.hub_ports import HubPorts
from gpuwaste.hub.server import WebServer, open_tcp
from gpuwaste.ledger.curves.curve_service import Curves
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.munge_credentials import Munge, MungeChecker, MungeIssuer
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster import LoopbackCluster, ManagedProcess
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.daemon_config import free_port, to_toml
from gpuwaste.testing.runtime import shared_runtime

if TYPE_CHECKING:
    from gpuwaste.net.request_signing import Checkers

ALL = (
    *("cancel", "checkpoint", "comment", "drain", "extend_limit", "hold", "lower_request", "release", "requeue"),
    *("shrink", "signal"),
)
ACTOR = "gpuwaste"  # of the cluster's users the one that is Operator


@dataclass
class ActorScene:
    """One hub, and actors as threads of the test or as processes of their own."""

    cluster: LoopbackCluster
    directory: Path
    hub: Hub
    port: int
    stop_file: Path
    slurm: CommandClient
    _journals: list[ActionJournal] = field(default_factory=list)
    _numbers: int = 0

    def run_of(self, job: int | str) -> RunningJob:
        """Return a job's record."""
        number, _, task = str(job).partition("_")
        found = self.slurm.job(int(number))
        return next(one for one in found if not task or one.array_task_id == int(task))

    def intend(
        self, kind: str, job: int | str, options: dict[str, str] | None = None, *, expires_s: int = 600, **other: Any
    ) -> str:
        """Take up an intent about a job as it is now, and return its id."""
        record = self.run_of(job)
        start = record.start if record.start is not None else record.submit
        assert start is not None
        run = RunKey(self.slurm.cluster_name(), record.job_id, start)
        known = {"run": run, "subject": str(run), "user": record.user, "account": record.account}
        return self.add(kind, options, expires_s=expires_s, **{**known, **other})

    def add(
        self, kind: str, options: dict[str, str] | None = None, *, run: RunKey | None = None,
        approve: Approval = "none", expires_s: int = 600, **other: Any,
    ) -> str:  # fmt: skip
        """Take up any intent, and return its id."""
        self._numbers += 1
        now = int(time.time())
        subject = other.pop("subject")
        intent = ActionEntry(
            id=action_id("idle", kind, subject, str(self._numbers)), rule="", rule_hash="", kind=kind,
            subject=subject, cluster=run.cluster if run else "", job_id=run.job_id if run else None,
            start=run.start if run else None, options=options or {}, facts='{"idle_s": 7200}', approve=approve,
            decided=now, expires=now + expires_s, status="intended", since=now, **other,
        )  # fmt: skip
        assert self.hub.get(ActionParts).manager.intend([intent]) == [intent.id]
        return intent.id

    def row(self, action: str) -> ActionEntry:
        """Return an action as the hub has it."""
        return self.hub.get(ActionParts).store.found(action)[0]

    def end(self, action: str) -> tuple[str, str]:
        """Return an action's status and the reason of it."""
        row = self.row(action)
        return row.status, row.reason

    def queue(self, name: str = "here") -> HubActionQueue:
        """Return the hub as an actor of this process asks it."""
        issuer = MungeIssuer(Munge(str(self.cluster.munge_socket)), hub_uid=0)
        return HubActionQueue(HubClient(f"http://127.0.0.1:{self.port}", issuer), name)

    def poller(
        self,
        name: str = "here",
        *,
        path: str = "",
        timeout_s: float = 20.0,
        clock: Clock | None = None,
        queue: ActionQueue | None = None,
        **settings: Any,
    ) -> ActionPoller:
        """Return an actor of this process; `path` holds commands that take the place of Slurm's."""
        journal = ActionJournal(self.directory / f"{name}.sqlite", int(time.time()))
        self._journals.append(journal)
        known = ActorSettings(kinds=ALL, stop_file=self.stop_file, poll_s=0.1, confirm_s=20.0, max_per_hour=100)
        slurm = CommandClient(self.slurm.slurm_conf, timeout_s, path=path)
        return ActionPoller(
            queue or self.queue(name),
            slurm,
            journal,
            replace(known, **settings),
            clock or SystemClock(),
            name=name,
            stop=threading.Event(),
        )

    def turns(self, poller: ActionPoller, action: str) -> tuple[str, str]:
        """Let an actor go on until an action has ended; returns how."""

        def ended() -> bool:
            poller.turn()
            return self.row(action).status not in {"intended", "approved", "sent"}

        wait_until(ended, 60, f"the end of action {action[:12]}", lambda: str(self.row(action)), poll_s=0.2)
        return self.end(action)

    def gpuwaste(self, *words: str, user: str, hub: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `gpuwaste rules ...` as a user; without `hub` nobody answers at hub_url."""
        config = self.directory / "cli.toml"
        url = f"http://127.0.0.1:{self.port if hub else free_port()}"
        common = {"hub_url": url, "munge_socket": str(self.cluster.munge_socket)}
        config.write_text(to_toml({"common": common, "actor": {"stop_file": str(self.stop_file)}}))
        config.chmod(0o644)
        runtime = shared_runtime(self.cluster.directory / "site" / "runtime")
        argv = runtime.command("rules", *words, "--config", str(config))
        return self.cluster.run(argv, user, env=runtime.env, check=False, timeout_s=60)

    def python(self, *words: str, user: str) -> subprocess.CompletedProcess[str]:
        """Run Python as a user."""
        runtime = shared_runtime(self.cluster.directory / "site" / "runtime")
        return self.cluster.run([str(runtime.python), *words], user, env=runtime.env, check=False, timeout_s=60)

    def process(self, *, path: str = "", name: str = "actor", **keys: Any) -> ManagedProcess:
        """Start an actor as a process of its own, of a user who is an Operator of Slurm."""
        state = self.directory / name
        state.mkdir(mode=0o755, exist_ok=True)
        shutil.chown(state, ACTOR, ACTOR)
        config = self.directory / f"{name}.toml"
        actor = {
            "actions": list(ALL), "state_dir": str(state), "stop_file": str(self.stop_file),
            "listen": f"127.0.0.1:{free_port()}", "max_per_hour": 100, **keys,
        }  # fmt: skip
        common = {
            "hub_url": f"http://127.0.0.1:{self.port}", "munge_socket": str(self.cluster.munge_socket),
            "slurm_conf": str(self.cluster.layout.slurm_conf),
        }  # fmt: skip
        config.write_text(to_toml({"common": common, "agent": {"hub_user": "root"}, "actor": actor}))
        config.chmod(0o644)
        runtime = shared_runtime(self.cluster.directory / "site" / "runtime")
        env = {**runtime.env, **({"PATH": f"{path}:{self.cluster.env()['PATH']}"} if path else {})}
        return self.cluster.spawn(
            runtime.command("actor", "run", "--config", str(config)), user=ACTOR, env=env, name=name
        )

    def events(self) -> list[str]:
        """Return the kinds of all events of actions, in order."""
        page = self.hub.get(EventService).store.page(0, 5000)
        return [event.kind for event in page.events if event.kind.startswith("action.")]

    def close(self) -> None:
        """Close what actors of this process hold."""
        for journal in self._journals:
            journal.close()


def running(scene: ActorScene, script: str = "sleep 300", **options: str | int) -> int:
    """Submit a job of alice's and wait until it has run for a second: requeued within it, its key would stay."""
    job = scene.cluster.sbatch(script, user="alice", **{"partition": "cpu", "time": "10", **options})
    scene.cluster.wait_job(job, "RUNNING")
    started = scene.run_of(job).start or 0
    wait_until(lambda: time.time() >= started + 1, 10, "a second of the run", lambda: "", poll_s=0.1)
    return job


def stand_in(directory: Path, name: str, script: str) -> str:
    """Put a script in the place of one of Slurm's commands, which it finds as $REAL; returns the directory for PATH."""
    real = shutil.which(name)
    assert real
    path = directory / "bin"
    path.mkdir(mode=0o755, exist_ok=True)
    file = path / name
    file.write_text(f"#!/bin/bash\nREAL={real}\n{script}\n")
    file.chmod(0o755)
    return str(path)


@contextlib.contextmanager
def actor_scene(cluster: LoopbackCluster, actor_user: str = "root", **actor: Any) -> Iterator[ActorScene]:
    """Run a hub of this process on the cluster, which has no jobs before and after."""
    cluster.reset()
    directory = Path(tempfile.mkdtemp(prefix="actor", dir=cluster.directory))
    directory.chmod(0o755)
    conf = str(cluster.layout.slurm_conf)
    config = Config(
        common=CommonConfig(models_dir=str(directory / "models"), slurm_conf=conf),
        hub=HubConfig(state_dir=str(directory / "hub"), actor_user=actor_user, sacct_first_days=1),
        actor=ActorConfig(**{"max_per_hour": 100, **actor}),
    )
    slurm, clock = CommandClient(conf), SystemClock()
    checkers: Checkers = {"munge": MungeChecker(Munge(str(cluster.munge_socket)))}
    hub = Hub(config, HubPorts(slurm, clock, checkers, uid_of=lambda *_: pwd.getpwnam("dave").pw_uid))
    tcp = open_tcp("127.0.0.1:0")
    port = tcp.getsockname()[1]
    server = WebServer(hub.app, tcp, None, None)
    thread = threading.Thread(target=server.run, kwargs={"signals": False})
    thread.start()
    scene = ActorScene(cluster, directory, hub, port, directory / "stop-actions", slurm)
    try:
        yield scene
    finally:
        scene.close()
        server.stop()
        thread.join(30)
        hub.get(Curves).close()
        hub.store.close()
        # By name: scancel 22.05 finds no task by its own number once the one with the array's number is gone.
        cluster.run(["scancel", "--user=alice"], check=False)
        cluster.reset()
