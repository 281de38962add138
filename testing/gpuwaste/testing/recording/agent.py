"""`python -m gpuwaste.testing.recording.agent --config FILE --tape FILE`: the agent, with what it sees on a tape."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuwaste.agent.agent_daemon import run_agent
from gpuwaste.agent.agent_ports import NodeEdges
from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import Collectors, CollectorSettings, create_collectors
from gpuwaste.agent.device_map import DeviceMap, Questioner, node_sources
from gpuwaste.agent.facts.gpu_identities import PositionTable
from gpuwaste.agent.facts.prolog_files import PrologSource
from gpuwaste.agent.facts.run_facts import Facts, FactSource, LocalRun
from gpuwaste.agent.node_runs import RunTracker
from gpuwaste.agent.readings import GpuCollector, GpuIdentity, GpuScan, HostCollector, HostUse, JobMap
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import load_config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.recording.format import AgentStart, Devices, Fact, RecordedTick, Scanned
from gpuwaste.testing.recording.tape import Tape


@dataclass(slots=True)
class TickRecorder:
    """Gathers what the parts of one agent see in a tick, and puts it on the tape when the device map is done."""

    node: str
    tape: Tape
    clock: Clock
    scans: list[Scanned] = field(default_factory=list)
    host: Mapping[int, HostUse] | None = None
    runs: tuple[LocalRun, ...] = ()
    ended: tuple[LocalRun, ...] = ()
    facts: list[Fact] = field(default_factory=list)

    def flush(self, utc_us: int) -> None:
        """Write the tick that began at `utc_us`."""
        since_us = self.clock.utc_us() - utc_us
        tick = RecordedTick(
            utc_us,
            self.clock.mono_us() - since_us,
            self.node,
            tuple(self.scans),
            self.host,
            self.runs,
            self.ended,
            tuple(self.facts),
        )
        self.scans, self.facts, self.host = [], [], None
        self.tape.add(tick)


class RecordedGpus:
    """A GPU collector whose answers are recorded."""

    def __init__(self, inner: GpuCollector, recorder: TickRecorder) -> None:
        self.name = inner.name
        self._inner = inner
        self._recorder = recorder

    def scan(self) -> GpuScan:
        """Scan, and note the answer or why there is none."""
        try:
            scan = self._inner.scan()
        except CollectorError as error:
            self._recorder.scans.append(Scanned(self.name, reason=error.reason))
            raise
        xids = tuple((uuid, xid, count) for (uuid, xid), count in scan.xids.items())
        self._recorder.scans.append(Scanned(self.name, replace(scan, xids={}), xids))
        return scan

    def close(self) -> None:
        """Let go of the driver."""
        self._inner.close()


class RecordedHost:
    """The host collector with its answers recorded."""

    def __init__(self, inner: HostCollector, recorder: TickRecorder) -> None:
        self.name = inner.name
        self._inner = inner
        self._recorder = recorder

    def use(self) -> dict[int, HostUse]:
        """Return the use of each job."""
        found = self._inner.use()
        self._recorder.host = dict(found)
        return found

    def close(self) -> None:
        """Forget what was cached."""
        self._inner.close()


class RecordedSource:
    """A source of facts whose words are recorded."""

    def __init__(self, inner: FactSource, recorder: TickRecorder) -> None:
        self.name = inner.name
        self._inner = inner
        self._recorder = recorder

    @property
    def health(self) -> str:
        """Why the source is silent."""
        return self._inner.health

    @health.setter
    def health(self, words: str) -> None:
        self._inner.health = words

    def facts(self, run: LocalRun) -> Facts | None:
        """Return what the source says of the run."""
        said = self._inner.facts(run)
        if said is not None:
            self._recorder.facts.append(Fact(self.name, *run.ident, said))
        return said


class RecordedTracker(RunTracker):
    """The tracker of local runs, its runs recorded."""

    recorder: TickRecorder

    def update(self, now_us: int, pids: Mapping[int, frozenset[int]]) -> list[LocalRun]:
        """Look again; the processes of runs are recorded with the host's use."""
        ended = super().update(now_us, pids)
        self.recorder.runs = tuple(replace(run, pids=frozenset()) for run in self.runs.values())
        self.recorder.ended = tuple(replace(run, pids=frozenset()) for run in ended)
        return ended


class RecordedMap(DeviceMap):
    """The device map; its end is the end of a tick's recording."""

    recorder: TickRecorder

    def update(
        self,
        now_us: int,
        gpus: Sequence[GpuIdentity],
        pids: Mapping[str, frozenset[int] | None],
        host_pids: Mapping[int, frozenset[int]],
        suspended: frozenset[int] = frozenset(),
    ) -> JobMap:
        """Return the map."""
        try:
            return super().update(now_us, gpus, pids, host_pids, suspended)
        finally:
            self.recorder.flush(now_us)


@dataclass(slots=True)
class RecorderEdges:
    """Makes the parts of one node's agent, each with a recorder around it."""

    recorder: TickRecorder

    def collectors(self, names: Sequence[str], settings: CollectorSettings) -> Collectors:
        """Make the named collectors."""
        made = create_collectors(names, settings)
        return Collectors(
            [RecordedGpus(gpu, self.recorder) for gpu in made.gpu],
            [RecordedHost(host, self.recorder) for host in made.host],
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
        """Make the device map with the sources that `node_device_map` gives it."""
        recorder = self.recorder
        devices = tuple(d for at in range(positions.size) if (d := positions.device(at)) is not None)
        recorder.tape.add(AgentStart(recorder.clock.utc_us(), node))
        recorder.tape.add(Devices(recorder.clock.utc_us(), node, devices))
        tracker = RecordedTracker(node, spool_dir, prolog)
        tracker.recorder = recorder
        sources = [RecordedSource(s, recorder) for s in node_sources(node, prolog)]
        made = RecordedMap(node, cluster, tracker=tracker, positions=positions, sources=sources, questions=questions)
        made.recorder = recorder
        return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent in the foreground."""
    parser = argparse.ArgumentParser(prog="python -m gpuwaste.testing.recording.agent", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--tape", type=Path, required=True)
    options = parser.parse_args(argv)
    try:
        config = load_config(options.config)
        recorder = TickRecorder(config.agent.node_name, Tape(options.tape), SystemClock())
        edges = RecorderEdges(recorder)
        return run_agent(config, NodeEdges(edges.collectors, edges.device_map))
    except GpuwasteError as error:
        sys.stderr.write(f"agent: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
