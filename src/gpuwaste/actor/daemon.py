"""`gpuwaste actor`: puts the parts together, asks and acts until a signal comes."""

import os
import signal
import socket
import threading
from pathlib import Path
from typing import Final

from prometheus_client.registry import CollectorRegistry

from gpuwaste.actor.action_poller import ActionPoller
from gpuwaste.actor.action_queue import HubActionQueue
from gpuwaste.actor.actor_metrics import ActorCollector
from gpuwaste.actor.actor_settings import ActorSettings
from gpuwaste.actor.journal import ActionJournal
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.log_event import BUG
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.version import own_version
from gpuwaste.core.worker import AFTER_DEFECT_S
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.net.exporter import MetricsServer, ProgramCollector
from gpuwaste.net.notify import SystemdNotifier
from gpuwaste.slurm.clients.commands import CommandClient

JOURNAL: Final = "actions.sqlite"
_STARTED: Final = log_event.info("actor-started: gpuwaste actor {version} started, permitted actions: {kinds}")
_NOTHING: Final = log_event.warning(
    "actor-idle: [actor] actions is empty, this actor takes no action",
    "List the actions that it may take, such as signal and cancel, and restart it.",
)
_STOPPED: Final = log_event.info("actor-stopped: actor has stopped")


def run_actor(config: Config) -> int:
    """Run the actor until a signal; returns the exit code. Raises GpuwasteError where it cannot start."""
    set_up_logging()
    notifier, stop, clock = SystemdNotifier.from_environment(), threading.Event(), SystemClock()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    os.umask(UMASK)
    state_dir = Path(config.actor.state_dir)
    closed_directory(state_dir, "[actor] state_dir")
    settings = ActorSettings.from_config(config)
    journal = ActionJournal(state_dir / JOURNAL, clock.utc_us() // 1_000_000)
    name = f"{socket.gethostname()}:{state_dir}"
    slurm = CommandClient(config.common.slurm_conf, settings.command_s)
    poller = ActionPoller(
        HubActionQueue(daemon_client(config), name), slurm, journal, settings, clock,
        name=name, stop=stop, alive=notifier.alive,
    )  # fmt: skip
    server = _metrics(config, poller, clock, state_dir)
    _STARTED.log(version=own_version(), kinds=", ".join(settings.kinds) or "nothing")
    if not settings.kinds:
        _NOTHING.log()
    notifier.ready("asks the hub")
    try:
        while not stop.is_set():
            notifier.alive()
            clock.wait(stop, _turn(poller))
    finally:
        notifier.stopping()
        if server is not None:
            server.stop()
        journal.close()
    _STOPPED.log()
    return 0


def _turn(poller: ActionPoller) -> float:
    try:
        return poller.turn()
    except Exception as error:  # noqa: BLE001 a defect in one turn must not end the daemon
        BUG.log(error, what="action")
        return AFTER_DEFECT_S


def _metrics(config: Config, poller: ActionPoller, clock: Clock, state_dir: Path) -> MetricsServer | None:
    actor = config.actor
    if not actor.listen:
        return None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ActorCollector(poller.counters, clock))
    registry.register(ProgramCollector(own_version(), clock.utc_us, state_dir))
    server = MetricsServer(actor.listen, registry, section="actor", tls_cert=actor.tls_cert, tls_key=actor.tls_key)
    server.start()
    return server
