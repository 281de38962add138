"""`gpuwaste actor`: puts the parts together, asks and acts until a signal comes."""

import os
import signal
import socket
import threading
from pathlib import Path
from typing import Final

from gpuwaste.actor.action_poller import ActionPoller
from gpuwaste.actor.actor_metrics import ActorExporter
from gpuwaste.actor.actor_settings import ActorPorts, ActorSettings
from gpuwaste.actor.journal import ActionJournal
from gpuwaste.core import log_event
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.log_event import BUG
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.parts import Parts
from gpuwaste.core.version import own_version
from gpuwaste.core.worker import AFTER_DEFECT_S
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.net.notify import SystemdNotifier
from gpuwaste.slurm.clients.commands import CommandClient

_PARTS: Final = (ActionJournal, ActionPoller, ActorExporter)
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
    slurm = CommandClient(config.common.slurm_conf, settings.command_s)
    name = f"{socket.gethostname()}:{state_dir}"
    parts = Parts(config, settings, ActorPorts(slurm, daemon_client(config), clock, name, stop, notifier.alive))
    parts.make(_PARTS)
    parts.start()
    _STARTED.log(version=own_version(), kinds=", ".join(settings.kinds) or "nothing")
    if not settings.kinds:
        _NOTHING.log()
    notifier.ready("asks the hub")
    poller = parts.get(ActionPoller)
    try:
        while not stop.is_set():
            notifier.alive()
            clock.wait(stop, _turn(poller))
    finally:
        notifier.stopping()
        parts.close()
    _STOPPED.log()
    return 0


def _turn(poller: ActionPoller) -> float:
    try:
        return poller.turn()
    except Exception as error:  # noqa: BLE001 a defect in one turn must not end the daemon
        BUG.log(error, what="action")
        return AFTER_DEFECT_S
