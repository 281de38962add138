"""`gpuwaste actor`: makes its parts, exports /metrics, and executes actions until a signal.

No label of a metric contains a user's name.
"""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from gpuwaste.actor.action_journal import ActionJournal
from gpuwaste.actor.action_poller import ActionPoller, ActorCounters
from gpuwaste.actor.actor_settings import ActorPorts, ActorSettings
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.log_event import BUG
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.parts import Parts
from gpuwaste.core.version import own_version
from gpuwaste.core.worker import AFTER_DEFECT_S
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.net.metrics_server import ExporterPart, ProgramCollector, exporter
from gpuwaste.net.systemd_notifier import SystemdNotifier
from gpuwaste.slurm.clients.command_client import CommandClient


class ActorExporter(ExporterPart):
    """Serves the metrics at the address of `[actor] listen`."""

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an actor. Raises ConfigError."""
        actor, clock = parts.get(Config).actor, parts.get(ActorPorts).clock
        registry = CollectorRegistry(auto_describe=False)
        registry.register(ActorCollector(parts.get(ActionPoller).counters, clock))
        registry.register(ProgramCollector(own_version(), clock.utc_us, Path(actor.state_dir)))
        return cls(exporter(actor, registry, section="actor"))


_PARTS: Final = (ActionJournal, ActionPoller, ActorExporter)
_STARTED: Final = log_event.info("actor-started: gpuwaste actor {version} started, permitted actions: {kinds}")
_NOTHING: Final = log_event.warning(
    "actor-idle: [actor] actions is empty, this actor takes no action",
    "List the actions that it may take, such as signal and cancel, and restart it.",
)
_STOPPED: Final = log_event.info("actor-stopped: actor has stopped")


def run_actor(config: Config) -> int:
    """Run the actor until a signal; return the exit code. Raises GpuwasteError if it cannot start."""
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
    notifier.ready("polls the hub")
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


class ActorCollector(Collector):
    """Yields the metrics of one scrape."""

    def __init__(self, counters: ActorCounters, clock: Clock) -> None:
        self._counters = counters
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        counters = self._counters
        ended = CounterMetricFamily("gpuwaste_actor_actions", "Actions, by kind and end.", labels=["kind", "status"])
        for labels, count in sorted(counters.ended.copy().items()):
            ended.add_metric(labels, count)
        yield ended
        troubles = CounterMetricFamily(
            "gpuwaste_actor_troubles",
            "What kept the actor from acting, by kind: hub, journal, clock, lease (another actor acts), or "
            "waits (an action was put off).",
            labels=["kind"],
        )
        for kind, count in sorted(counters.troubles.copy().items()):
            troubles.add_metric([kind], count)
        yield troubles
        yield GaugeMetricFamily("gpuwaste_actor_stopped", "1 while the stop file exists.", int(counters.stopped))
        yield GaugeMetricFamily("gpuwaste_actor_leased", "1 while this actor may act.", int(counters.leased))
        yield GaugeMetricFamily(
            "gpuwaste_actor_unreported", "1 while the end of an action waits for the hub.", int(counters.unreported)
        )
        age = GaugeMetricFamily("gpuwaste_actor_hub_age_seconds", "Time since the hub's last answer to a query.")
        if counters.answered_utc is not None:
            age.add_metric([], max(0.0, self._clock.utc_us() / 1e6 - counters.answered_utc))
        yield age

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering must not read."""
        yield from ()
