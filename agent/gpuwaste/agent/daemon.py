"""The agent: puts its parts together, runs them until SIGTERM, and leaves everything that was measured on the disk."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpuwaste.agent.bounded import LIMIT_S
from gpuwaste.agent.collectors import Collectors, CollectorSettings, create_collectors
from gpuwaste.agent.control import ControlServer, release_seconds
from gpuwaste.agent.device_map import DeviceMap, node_device_map
from gpuwaste.agent.exporter import Exporter
from gpuwaste.agent.facts.positions import PositionTable
from gpuwaste.agent.facts.prolog import PrologSource
from gpuwaste.agent.health import HealthSink, health_xids
from gpuwaste.agent.hour_aggregator import GAP_INTERVALS, HourAggregator, replay_from_us
from gpuwaste.agent.jobstats import JobstatsCollector, Owners
from gpuwaste.agent.map_queries import Questions
from gpuwaste.agent.metrics import Health
from gpuwaste.agent.node_store import RAW, NodeStore
from gpuwaste.agent.outbox import Outbox
from gpuwaste.agent.own_node import OwnNode, Stopped, find_own_node
from gpuwaste.agent.sample_server import Askers, SampleServer, hub_asks
from gpuwaste.agent.sampler import Sampler
from gpuwaste.agent.sinks import HourSink, RawSink
from gpuwaste.agent.snapshot import LatestSnapshot
from gpuwaste.agent.state_lock import StateLock
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.reload import Reloader
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.version import own_version
from gpuwaste.ledger.hour_batch import HourBatch
from gpuwaste.net.batch import Envelope
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.net.exporter import Answers
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.notify import SILENT, SystemdNotifier
from gpuwaste.net.samples import SAMPLES_PATH
from gpuwaste.net.shipper import Shipper
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.clients.commands import CommandClient

_STARTED: Final = log_event.info("agent-started: agent {version}: node {node} of cluster {cluster}")
_STOPS: Final = log_event.info("agent-stops: agent is stopping")
_SAMPLER_ENDED: Final = log_event.critical(
    "sampler-ended: bug in gpuwaste: the sampling thread has ended, the agent exits with code 1",
    "systemd starts the agent again. Report this line and those before it.",
)
_DRIVER_HANGS: Final = log_event.error(
    "driver-hangs: the GPU driver does not answer, agent stopped without its last rows",
    "A GPU or its driver hangs: see `nvidia-smi` and `dmesg`. The last minutes are unknown.",
)
_OUTBOX_FAILED: Final = log_event.error(
    "outbox-failed: {about} failed: {error}",
    "The outbox cannot be read at the start or written at the end: check the disk of `[agent] state_dir`.",
)

_JITTER_INTERVALS: Final = 3  # over which the nodes of one job spread their questions to slurmctld
_JOIN_S: Final = 15.0  # a tick in flight; a driver that hangs longer is left behind
_RELEASE_WAIT_S: Final = 20.0
_LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class NodeEdges:
    """How the parts that touch the node are made; a recorder wraps them, and a recording takes their place."""

    collectors: Callable[[Sequence[str], CollectorSettings], Collectors] = create_collectors
    device_map: Callable[..., DeviceMap] = node_device_map


NODE: Final = NodeEdges()


def run_agent(config: Config, edges: NodeEdges = NODE, path: Path | None = None) -> int:
    """Run the agent in the foreground and return its exit code. Raises GpuwasteError where it cannot start.

    `path` is the configuration file that SIGHUP reads again, None for the default one.
    """
    set_up_logging()
    notifier = SystemdNotifier.from_environment()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: None)  # what it asks for is about to be done
    clock = SystemClock()
    events = EventLog(clock)
    os.umask(UMASK)
    closed_directory(Path(config.agent.state_dir), "[agent] state_dir")
    closed_directory(Path(config.common.run_dir), "[common] run_dir", 0o755)
    lock = StateLock(Path(config.agent.state_dir))
    try:
        slurm = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s)
        site = find_own_node(config, slurm, clock, stop, events, waiting=notifier.starting)
        agent = Agent(
            config,
            site,
            clock=clock,
            events=events,
            slurm=slurm,
            hub=daemon_client(config),
            askers=hub_asks(config),
            edges=edges,
            notifier=notifier,
        )
        signal.signal(signal.SIGHUP, agent.reloader(lambda: load_config(path)).in_thread)
        try:
            return agent.run(stop)
        finally:
            agent.close()
    except Stopped:
        return 0
    finally:
        lock.close()


@dataclass(frozen=True, slots=True)
class _Hours:
    """The parts through which hours leave."""

    book: HourAggregator
    outbox: Outbox
    shipper: Shipper[HourBatch]
    sink: HourSink


class Agent:
    """All parts of one agent, made in the constructor and started by run()."""

    def __init__(
        self,
        config: Config,
        site: OwnNode,
        *,
        clock: Clock,
        events: EventLog,
        slurm: SlurmClient,
        hub: HubClient,
        askers: Askers | None = None,
        edges: NodeEdges = NODE,
        notifier: SystemdNotifier = SILENT,
    ) -> None:
        self._config = config
        self._askers = askers
        self._notifier = notifier
        self._site = site
        self._clock = clock
        self._events = events
        self._began_us = clock.utc_us()
        self._snapshot = LatestSnapshot(int(config.agent.interval_s * GAP_INTERVALS * 1e6))
        self._serves = False
        agent = config.agent
        state_dir = Path(agent.state_dir)
        self._store = NodeStore(state_dir, agent.retention_days, agent.retention_bytes)
        self._hours = self._make_hours(state_dir, hub)
        self._positions = PositionTable(lambda: slurm.device_list(site.node), site.slurm_files, site.slurmd_pid)
        self._gpu_health = HealthSink(Path(config.common.run_dir), self._positions, health_xids(agent.health_xids))
        self._questions, self._map = self._make_map(slurm, hub, edges)
        self._owners = Owners() if agent.jobstats_metrics and agent.metrics_token_file else None
        settings = CollectorSettings(
            clock=clock,
            node=site.node,
            mig_minors=Path(agent.mig_minors),
            dcgm_url=agent.dcgm_url,
            spool_dir=site.spool_dir,
            scan_limit_s=min(LIMIT_S, agent.interval_s / 2),  # so that other vendors' GPUs have no gap
        )
        self._sampler = Sampler(
            clock=clock,
            interval_s=agent.interval_s,
            collectors=edges.collectors(agent.collectors, settings),
            device_map=self._map,
            sinks=(
                self._snapshot,
                self._hours.sink,
                RawSink(self._store),
                self._gpu_health,
                *([] if self._owners is None else [self._owners]),
            ),
            events=events,
            beat=self._beat,
        )
        self._control = ControlServer(Path(config.common.run_dir), {"status": self._status, "release": self._release})
        self._exporter = self._make_exporter() if agent.listen else None
        self._thread = threading.Thread(target=self._sampler.run, name="sampler", daemon=True)

    def run(self, stop: threading.Event) -> int:
        """Sample until `stop` is set; return 0, or 1 where the sampling thread ended by itself."""
        site = self._site
        _STARTED.log(version=own_version(), node=site.node, cluster=site.cluster)
        self.restore()
        for part in (self._questions, self._hours.shipper, self._control, self._exporter):
            if part is not None:
                part.start()
        self._thread.start()
        while not self._clock.wait(stop, _LOOK_S):
            if not self._thread.is_alive():
                _SAMPLER_ENDED.log()
                return 1
        _STOPS.log()
        self._notifier.stopping()
        return 0

    def reloader(self, read: Callable[[], Config]) -> Reloader:
        """Return what puts a changed configuration in force: the keys of what is kept, and of health."""
        return Reloader(
            self._config,
            read,
            ("common", "agent"),
            {
                ("agent.retention_days", "agent.retention_bytes"): lambda c: self._store.keep(
                    c.agent.retention_days, c.agent.retention_bytes
                ),
                ("agent.health_xids",): lambda c: self._gpu_health.heed(health_xids(c.agent.health_xids)),
            },
        )

    def _beat(self) -> None:
        """Say that the sampling thread goes on; after the first tick, that the agent serves."""
        if not self._serves:
            self._serves = True
            self._notifier.ready(f"node {self._site.node} of cluster {self._site.cluster}")
        self._notifier.alive()

    def step(self) -> None:
        """Tick, answer questions and ship once, for a caller that drives the clock instead of `run`."""
        self._sampler.tick()
        while self._questions.step() <= 0:
            pass
        self._hours.shipper.step()

    def close(self) -> None:
        """Stop all parts; the hours measured so far are in the outbox when this returns."""
        self._sampler.stop()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        for part in (self._control, self._exporter, self._questions):
            if part is not None:
                part.stop()
        if self._thread.is_alive():
            _DRIVER_HANGS.log()
        else:
            with self._logged("last write to the outbox"):
                self._hours.sink.flush(self._clock.utc_us())
            self._store.close()
        self._hours.shipper.stop()
        self._hours.outbox.close()

    def _make_hours(self, state_dir: Path, hub: HubClient) -> _Hours:
        agent, site = self._config.agent, self._site
        every_s = agent.ship_every_s
        book = HourAggregator(site.cluster, site.node, agent.interval_s, every_s)
        outbox = Outbox(state_dir / "outbox.sqlite")
        envelope = Envelope(site.cluster, site.node, _boot_id(), own_version())
        shipper = Shipper(outbox, hub.post_hours, envelope, self._clock, every_s=every_s)
        return _Hours(book, outbox, shipper, HourSink(book, outbox, shipper.wake))

    def _make_map(self, slurm: SlurmClient, hub: HubClient, edges: NodeEdges) -> tuple[Questions, DeviceMap]:
        agent, site = self._config.agent, self._site
        positions = self._positions
        positions.check()
        questions = Questions(
            site.node,
            hub,
            slurm if agent.ask_slurmctld else None,
            self._clock,
            jitter_s=agent.interval_s * _JITTER_INTERVALS,
            chores=(positions.check,),
        )
        device_map = edges.device_map(
            site.node,
            site.cluster,
            positions,
            questions,
            spool_dir=site.spool_dir,
            prolog=PrologSource(Path(self._config.agent.jobs_dir)),
        )
        return questions, device_map

    def _make_exporter(self) -> Exporter:
        agent = self._config.agent
        health = Health(
            node=self._site.node,
            version=own_version(),
            boot_us=self._began_us,
            interval_s=agent.interval_s,
            view=lambda: self._snapshot.view,
            collectors=lambda: self._sampler.health,
            outbox_rows=self._depth,
            released_s=lambda: self._sampler.released_for_s,
            missed_ticks=lambda: self._sampler.missed,
            invalid_values=lambda: self._sampler.invalid_values,
            now_us=self._clock.utc_us,
            gpu_health=lambda: self._gpu_health.states,
            sinks=lambda: self._sampler.sinks_ok,
            state_dir=Path(agent.state_dir),
        )
        uid_of = None if self._owners is None else self._owners.uid_of
        more = [JobstatsCollector(lambda: self._snapshot.view, uid_of)] if agent.jobstats_metrics else []
        return Exporter(
            agent.listen,
            health,
            tls_cert=agent.tls_cert,
            tls_key=agent.tls_key,
            token_file=agent.metrics_token_file,
            more=more,
            answers=self._sample_answers(),
        )

    def _sample_answers(self) -> Answers:
        """Return what answers the hub for samples; nothing where nobody may ask."""
        if self._askers is None:
            return {}
        server = SampleServer(
            Path(self._config.agent.state_dir) / RAW,
            self._site.node,
            self._askers,
            kept_days=lambda: self._store.retention_days,
            gap_us=int(self._config.agent.interval_s * GAP_INTERVALS * 1e6),
        )
        return {SAMPLES_PATH: server.answer}

    def restore(self) -> None:
        """Go on from the rows and samples that an earlier agent left; a failure costs those alone."""
        with self._logged("restore from the outbox"):
            rows = self._hours.outbox.open_rows()
            since_us = replay_from_us(rows, self._clock.utc_us())
            self._hours.book.restore(rows, self._store.samples_since(since_us))

    def _depth(self) -> int | None:
        try:
            return self._hours.outbox.depth()
        except StoreError:
            return None

    def _status(self, _: dict[str, Any]) -> dict[str, Any]:
        view, shipper = self._snapshot.view, self._hours.shipper.status
        seen = view.seen
        return {
            "node": self._site.node,
            "cluster": self._site.cluster,
            "version": own_version(),
            "samples": view.samples_total,
            "last_sample_us": seen.t_utc_us if seen else None,
            "gpus": len(seen.gpus) if seen else 0,
            "jobs": sorted({holding.job_id for holding in seen.jobs.holdings}) if seen else [],
            "unmapped": dict(seen.jobs.unmapped) if seen else {},
            "collectors": {c.name: c.ok for c in self._sampler.health},
            "facts": {name: health or "ok" for name, health in self._map.sources.items()},
            "released_s": self._sampler.released_for_s,
            "outbox_rows": self._depth(),
            "sent_rows": shipper.sent_rows,
            "hub": shipper.last_error or "ok",
        }

    def _release(self, request: dict[str, Any]) -> dict[str, Any]:
        seconds = release_seconds(request)
        closed = self._sampler.release(seconds, _RELEASE_WAIT_S)
        return {"released": "yes" if closed else "as soon as the driver answers", "for_s": seconds}

    @contextlib.contextmanager
    def _logged(self, about: str) -> Iterator[None]:
        """Log an error of the store and go on."""
        try:
            yield
        except StoreError as error:
            self._events.trouble(_OUTBOX_FAILED, about, error=error)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
