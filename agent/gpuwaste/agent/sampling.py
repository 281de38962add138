"""Sampling: the thread that ticks, on what it reads and where it hands it."""

import threading
from pathlib import Path
from typing import Final

from gpuwaste.agent.agent_ports import AgentPorts
from gpuwaste.agent.bounded import LIMIT_S
from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.node_map import NodeMap
from gpuwaste.agent.observation import SinkPart
from gpuwaste.agent.sampler import Sampler
from gpuwaste.agent.sinks import HourSink
from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts

_DRIVER_HANGS: Final = log_event.error(
    "driver-hangs: the GPU driver does not answer, agent stopped without its last rows",
    "A GPU or its driver hangs: see `nvidia-smi` and `dmesg`. The last minutes are unknown.",
)
_JOIN_S: Final = 15.0  # a tick in flight; a driver that hangs longer is left behind


class Sampling(Part):
    """Hands each observation to the parts that are sinks, in their order."""

    def __init__(self, parts: Parts) -> None:
        """Take the sinks that are made."""
        agent, ports = parts.get(Config).agent, parts.get(AgentPorts)
        self._site = ports.site
        self._notifier = ports.notifier
        self._hours = parts.get(HourSink)
        self._serves = False
        settings = CollectorSettings(
            clock=ports.clock,
            node=ports.site.node,
            mig_minors=Path(agent.mig_minors),
            dcgm_url=agent.dcgm_url,
            spool_dir=ports.site.spool_dir,
            scan_limit_s=min(LIMIT_S, agent.interval_s / 2),  # so that other vendors' GPUs have no gap
        )
        self.sampler = Sampler(
            clock=ports.clock,
            interval_s=agent.interval_s,
            collectors=ports.edges.collectors(agent.collectors, settings),
            device_map=parts.get(NodeMap).devices,
            sinks=[part for part in parts.all() if isinstance(part, SinkPart)],
            events=ports.events,
            beat=self._beat,
        )
        self._thread = threading.Thread(target=self.sampler.run, name="sampler", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def before_start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; the hours measured so far are in the outbox when this returns."""
        self.sampler.stop()
        if self.alive:
            self._thread.join(_JOIN_S)
        if self.alive:
            _DRIVER_HANGS.log()
        else:
            self._hours.flush()

    def _beat(self) -> None:
        """Say that the sampling thread goes on; after the first tick, that the agent serves."""
        if not self._serves:
            self._serves = True
            self._notifier.ready(f"node {self._site.node} of cluster {self._site.cluster}")
        self._notifier.alive()
