"""The agent: starts its parts, runs them until SIGTERM, answers its control socket, and stores its measurements."""

import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from gpuwaste.agent.agent_exporter import AgentExporter
from gpuwaste.agent.agent_health import HealthSink
from gpuwaste.agent.agent_ports import NODE, AgentPorts, NodeEdges
from gpuwaste.agent.control_socket import ControlServer, release_seconds
from gpuwaste.agent.jobstats_metrics import Owners
from gpuwaste.agent.node_map import NodeMap
from gpuwaste.agent.node_store import NodeStore
from gpuwaste.agent.outbox import HourShipping, Outbox
from gpuwaste.agent.own_node import Stopped, find_own_node
from gpuwaste.agent.sample_server import hub_asks
from gpuwaste.agent.sampling import HourSink, RawSink, Sampling
from gpuwaste.agent.snapshot import LatestSnapshot
from gpuwaste.core import log_event
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.reload import Reloader
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.version import own_version
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.net.systemd_notifier import SystemdNotifier
from gpuwaste.slurm.clients.command_client import CommandClient

_RELEASE_WAIT_S: Final = 20.0
_STARTED: Final = log_event.info("agent-started: agent {version}: node {node} of cluster {cluster}")
_STOPS: Final = log_event.info("agent-stops: agent is stopping")
_SAMPLER_ENDED: Final = log_event.critical(
    "sampler-ended: bug in gpuwaste: the sampling thread has ended, the agent exits with code 1",
    "systemd starts the agent again. Report this line and those before it.",
)
_LOOK_S: Final = 1.0


class AgentCommands(Part):
    """Answers `status` and `release`."""

    def __init__(self, parts: Parts) -> None:
        """Raise GpuwasteError where the socket cannot be made."""
        self._parts = parts
        run_dir = Path(parts.get(Config).common.run_dir)
        self._server = ControlServer(run_dir, {"status": self._status, "release": self._release})

    def before_start(self) -> None:
        """Start to answer commands."""
        self._server.start()

    def close(self) -> None:
        """Stop answering commands."""
        self._server.stop()

    def _status(self, _: dict[str, Any]) -> dict[str, Any]:
        get = self._parts.get
        view, shipping = get(LatestSnapshot).view, get(HourShipping)
        site, sampler = get(AgentPorts).site, get(Sampling).sampler
        seen, shipped = view.seen, shipping.shipper.status
        return {
            "node": site.node,
            "cluster": site.cluster,
            "version": own_version(),
            "samples": view.samples_total,
            "last_sample_us": seen.t_utc_us if seen else None,
            "gpus": len(seen.gpus) if seen else 0,
            "jobs": sorted({holding.job_id for holding in seen.jobs.holdings}) if seen else [],
            "unmapped": dict(seen.jobs.unmapped) if seen else {},
            "collectors": {c.name: c.ok for c in sampler.health},
            "facts": {name: health or "ok" for name, health in get(NodeMap).devices.sources.items()},
            "released_s": sampler.released_for_s,
            "outbox_rows": shipping.depth(),
            "sent_rows": shipped.sent_rows,
            "hub": shipped.last_error or "ok",
        }

    def _release(self, request: dict[str, Any]) -> dict[str, Any]:
        seconds = release_seconds(request)
        closed = self._parts.get(Sampling).sampler.release(seconds, _RELEASE_WAIT_S)
        return {"released": "yes" if closed else "as soon as the driver answers", "for_s": seconds}


class StateLock:
    """Holds `state_dir`/agent.pid locked from construction to close(); the kernel releases it when the process dies.

    Raises StoreError naming the process that holds it, or why the directory cannot be used.
    """

    def __init__(self, state_dir: Path) -> None:
        path = state_dir / "agent.pid"
        try:
            state_dir.mkdir(parents=True, exist_ok=True, mode=0o750)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened: {error.strerror}: set [agent] state_dir") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._fd, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise StoreError(
                f"{state_dir}: used by another process, pid {holder}: each agent needs its own state_dir"
            ) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Release the lock; the file stays, empty."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def run_agent(config: Config, edges: NodeEdges = NODE, path: Path | None = None) -> int:
    """Run the agent in the foreground and return its exit code. Raises GpuwasteError where it cannot start.

    `path` is the configuration file that SIGHUP reads again, None for the default one.
    """
    set_up_logging()
    notifier = SystemdNotifier.from_environment()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: None)  # the configuration is about to be read anyway
    clock = SystemClock()
    events = EventLog(clock)
    os.umask(UMASK)
    closed_directory(Path(config.agent.state_dir), "[agent] state_dir")
    closed_directory(Path(config.common.run_dir), "[common] run_dir", 0o755)
    lock = StateLock(Path(config.agent.state_dir))
    try:
        slurm = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s)
        site = find_own_node(config, slurm, clock, stop, events, waiting=notifier.starting)
        ports = AgentPorts(site, clock, events, slurm, daemon_client(config), hub_asks(config), edges, notifier)
        agent = Agent(config, ports)
        signal.signal(signal.SIGHUP, agent.reloader(lambda: load_config(path)).in_thread)
        try:
            return agent.run(stop)
        finally:
            agent.close()
    except Stopped:
        return 0
    finally:
        lock.close()


def _kinds(config: Config) -> Iterator[type[Part]]:
    """Yield the parts in the order in which they start and in which sinks get observations; the last stops first."""
    yield from (NodeStore, LatestSnapshot, Outbox, HourSink, HourShipping, RawSink, NodeMap, HealthSink)
    if config.agent.jobstats_metrics and config.agent.metrics_token_file:
        yield Owners
    yield from (AgentExporter, AgentCommands, Sampling)


class Agent:
    """One agent: all its parts, created in the constructor and started by run()."""

    def __init__(self, config: Config, ports: AgentPorts) -> None:
        """Raise GpuwasteError where a part cannot be made."""
        self._config = config
        self._ports = ports
        self._parts = Parts(config, ports)
        self._parts.make(_kinds(config))

    def run(self, stop: threading.Event) -> int:
        """Sample until `stop` is set; return 0, or 1 where the sampling thread ended before."""
        site, sampling = self._ports.site, self._parts.get(Sampling)
        _STARTED.log(version=own_version(), node=site.node, cluster=site.cluster)
        self._parts.start()
        while not self._ports.clock.wait(stop, _LOOK_S):
            if not sampling.alive:
                _SAMPLER_ENDED.log()
                return 1
        _STOPS.log()
        self._ports.notifier.stopping()
        return 0

    def reloader(self, read: Callable[[], Config]) -> Reloader:
        """Return the reloader, which applies a changed configuration as far as the parts can."""
        return Reloader(self._config, read, ("common", "agent"), self._parts.reloads())

    def restore(self) -> None:
        """Continue from the state that an earlier agent left, for a caller of `step`."""
        self._parts.get(HourSink).before_start()

    def step(self) -> None:
        """Tick, answer questions and ship once, for a caller that drives the clock instead of `run`."""
        self._parts.get(Sampling).sampler.tick()
        while self._parts.get(NodeMap).questions.step() <= 0:
            pass
        self._parts.get(HourShipping).shipper.step()

    def close(self) -> None:
        """Stop all parts; the hours measured so far are in the outbox when this returns."""
        self._parts.close()
