"""What stands in the node's and Slurm's place while a recording is played."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import Collectors, CollectorSettings
from gpuwaste.agent.device_map import DeviceMap, Questioner
from gpuwaste.agent.facts.gpu_identities import PositionTable
from gpuwaste.agent.facts.prolog_files import PrologSource
from gpuwaste.agent.facts.run_facts import Facts, LocalRun
from gpuwaste.agent.node_runs import RunTracker
from gpuwaste.agent.readings import GpuScan, HostUse
from gpuwaste.core.clock import Clock
from gpuwaste.ledger.gpu_sample import MapSource
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.recording.format import Accounted, Devices, RecordedMap, RecordedTick, SiteFacts

_HOST = "host"
_SOURCES = (MapSource.PROLOG, MapSource.CGROUP)


@dataclass(slots=True)
class PlayedNode:
    """One node: its parts answer what the tick of the moment holds."""

    tick: RecordedTick

    def collectors(self, names: Sequence[str], _: CollectorSettings) -> Collectors:
        """Make the named collectors."""
        return Collectors(
            [PlayedGpus(name, self) for name in names if name != _HOST],
            [PlayedHost(self) for name in names if name == _HOST],
        )

    def device_map(
        self,
        node: str,
        cluster: str,
        positions: PositionTable,
        questions: Questioner,
        *,
        spool_dir: Path,
        prolog: PrologSource,
    ) -> DeviceMap:
        """Make the device map over the recorded facts."""
        tracker = PlayedTracker(node, spool_dir, prolog, boot_us=lambda: 0)
        tracker.node = self
        sources = [PlayedSource(name, self) for name in _SOURCES]
        return DeviceMap(node, cluster, tracker=tracker, positions=positions, sources=sources, questions=questions)


@dataclass(slots=True)
class PlayedGpus:
    """A GPU collector."""

    name: str
    node: PlayedNode

    def scan(self) -> GpuScan:
        """Return the recorded scan, or raise for the recorded reason."""
        for scanned in self.node.tick.scans:
            if scanned.name == self.name:
                if scanned.scan is None:
                    raise CollectorError(f"{self.name}: failed in the recorded run", scanned.reason)
                return replace(scanned.scan, xids={(uuid, xid): count for uuid, xid, count in scanned.xids})
        raise CollectorError(f"{self.name}: was not asked in the recorded run")

    def close(self) -> None:
        """Do nothing: no driver is open."""


@dataclass(slots=True)
class PlayedHost:
    """The host collector."""

    node: PlayedNode
    name: str = _HOST

    def use(self) -> dict[int, HostUse]:
        """Return the recorded use."""
        if self.node.tick.host is None:
            raise CollectorError("host: failed in the recorded run")
        return dict(self.node.tick.host)

    def close(self) -> None:
        """Do nothing."""


@dataclass(slots=True)
class PlayedSource:
    """A source of facts."""

    name: MapSource
    node: PlayedNode
    health: str = ""

    def facts(self, run: LocalRun) -> Facts | None:
        """Return what the source said of the run at this tick."""
        for fact in self.node.tick.facts:
            if (fact.source, fact.job_id, fact.since_us) == (self.name, *run.ident):
                return fact.said
        return None


class PlayedTracker(RunTracker):
    """The tracker, with the recorded runs in the place of sockets and files."""

    node: PlayedNode

    def update(self, now_us: int, pids: Mapping[int, frozenset[int]]) -> list[LocalRun]:  # noqa: ARG002 as RunTracker has it
        """Take the runs of this tick, and return those that ended."""
        tick = self.node.tick
        self.runs = {run.job_id: replace(run, pids=pids.get(run.job_id, frozenset())) for run in tick.runs}
        return [replace(run) for run in tick.ended]


@dataclass(slots=True)
class PlayedSlurm(FakeSlurm):
    """A SlurmClient that gives the recorded answers; one about a job is given from the start, as it came first."""

    clock: Clock | None = None
    answers: dict[int | None, list[RecordedMap]] = field(default_factory=dict)

    def take(self, entry: SiteFacts | Accounted | Devices) -> None:
        """Answer like this from now on."""
        match entry:
            case SiteFacts():
                self.settings = dict(entry.settings)
                self.partition_list, self.node_list = list(entry.partitions), list(entry.nodes)
                self.levels, self.account_coordinators = dict(entry.levels), dict(entry.coordinators)
            case Accounted():
                self.records = entry.records
            case Devices():
                self.devices[entry.node] = list(entry.devices)

    def job(self, job_id: int) -> list[RunningJob]:
        """Return the recorded answer that came next, else the last one."""
        return self._answer(job_id) or [
            job for job in self._answer(None) if job_id in {job.job_id, job.array_job_id, job.het_job_id}
        ]

    def jobs(self) -> list[RunningJob]:
        """Return all jobs of the recorded answers."""
        found = {job.job_id: job for asked in self.answers for job in self._answer(asked)}
        return list(found.values())

    def _answer(self, job_id: int | None) -> list[RunningJob]:
        answers = self.answers.get(job_id, [])
        now_us = self.clock.utc_us() if self.clock else 0
        found = next((a for a in answers if a.t_us >= now_us), answers[-1] if answers else None)
        return list(found.jobs) if found else []
