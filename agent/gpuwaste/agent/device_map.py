"""DeviceMap: which run of which job holds which GPU now, from local facts, each tick.

Every source of facts is queried about every run; their answers, as sets of UUIDs, are compared with one another and
with the compute processes that the driver lists. Where they disagree the GPU is in conflict: unattributed, never
guessed. Facts missing locally are requested from the questions thread, which never blocks this thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from gpuwaste.agent.facts.device_cgroup import CGROUP_ROOT, CgroupSource
from gpuwaste.agent.facts.gpu_identities import Identities, PositionTable
from gpuwaste.agent.facts.prolog_files import PrologSource
from gpuwaste.agent.facts.remote import RemoteSource, RunAnswer
from gpuwaste.agent.facts.run_facts import Facts, FactSource, LocalRun, PositionFacts
from gpuwaste.agent.node_runs import RunTracker
from gpuwaste.agent.readings import GpuAllocation, GpuIdentity, JobMap
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, UnknownReason
from gpuwaste.ledger.hour import MISSING_PREFIX
from gpuwaste.slurm.formats.gpu_positions import DevicePosition
from gpuwaste.slurm.run_key import RunKey

_TRUST: Final = tuple(MapSource)
_LATE_US: Final = 3_600_000_000  # for so long the start of an ended run is still used
_AHEAD_US: Final = 5_000_000  # a run starts before its prolog, within the difference of two clocks
_VOUCHED_US: Final = 300_000_000  # validity of an answer about a run without a socket
_NO_DRIVER_US: Final = 300_000_000  # from then on, GPUs of a node where the driver lists none are missing


class Questioner(Protocol):
    """Answers questions that local facts leave open. Neither call blocks."""

    def ask(self, job_id: int, since_us: int) -> None:
        """Queue a question, unless it is already being answered."""
        ...

    def answers(self) -> list[RunAnswer]:
        """Return the answers since the last call."""
        ...


@dataclass(slots=True)
class _Mapped:
    """A run with the known facts about its GPUs."""

    run: LocalRun
    start: int | None = None
    facts: dict[MapSource, Facts] = field(default_factory=dict)
    devices: dict[tuple[MapSource, int], DevicePosition | None] = field(default_factory=dict)  # at the first lookup
    sets: dict[MapSource, frozenset[str]] = field(default_factory=dict)
    version: int = -1  # version of the identities used for the sets
    own: set[str] = field(default_factory=set)  # GPUs on which a process of the run was seen
    strayed: bool = False  # a process of the run was seen on a GPU of others
    share: float | None = None

    @property
    def first(self) -> MapSource:
        """The most trusted source that knows the run's GPUs."""
        return next((name for name in _TRUST if name in self.sets), MapSource.NONE)

    @property
    def gpus(self) -> frozenset[str]:
        """The GPUs by the most trusted source."""
        return self.sets.get(self.first, frozenset())


class DeviceMap:
    """The node's map. For the sampling thread only."""

    def __init__(
        self,
        node: str,
        cluster: str,
        *,
        tracker: RunTracker,
        positions: PositionTable,
        sources: Sequence[FactSource],
        questions: Questioner,
    ) -> None:
        self._node = node
        self._cluster = cluster
        self._tracker = tracker
        self._positions = positions
        self._remotes = {name: RemoteSource(name) for name in (MapSource.HUB, MapSource.SLURMCTLD)}
        self._sources: tuple[FactSource, ...] = (*sources, *self._remotes.values())
        self._questions = questions
        self._identities = Identities()
        self._mapped: dict[tuple[int, int], _Mapped] = {}
        self._late: dict[tuple[int, int], LocalRun] = {}  # ended before their start was known
        self._first_us: int | None = None

    @property
    def jobs(self) -> frozenset[int]:
        """Jobs that are on this node, as of the last update."""
        return frozenset(self._tracker.runs)

    @property
    def sources(self) -> dict[str, str]:
        """Each source of facts, and why it has no data, "" where it works."""
        health = {source.name.value: source.health for source in self._sources}
        return {**health, "sockets": self._tracker.health, "positions": self._positions.health}

    def update(
        self,
        now_us: int,
        gpus: Sequence[GpuIdentity],
        pids: Mapping[str, frozenset[int] | None],
        host_pids: Mapping[int, frozenset[int]],
        suspended: frozenset[int] = frozenset(),
    ) -> JobMap:
        """Return the map at `now_us`.

        `pids` has the compute processes by GPU, None where they could not be read; `host_pids` and `suspended` are the
        processes of each job and the stopped jobs, from the host collector.
        """
        self._first_us = self._first_us or now_us
        self._identities.update(gpus)
        ended = self._tracker.update(now_us, host_pids)
        late = self._take_answers(now_us, ended)
        missed = [run for run in ended if run.certain and run.ident not in self._mapped]
        current = [self._map(run) for run in (*self._tracker.runs.values(), *missed)]
        unmapped = self._check(current, pids, host_pids)
        holdings = [holding for item in current for holding in self._holdings(item, unmapped, suspended)]
        self._ask(now_us, current, unmapped)
        ends = [(run.job_id, self._end_us(run, current)) for run in ended]
        for run in ended:
            self._retire(run)
        return JobMap(tuple(holdings), tuple(ends), late, unmapped)

    def _map(self, run: LocalRun) -> _Mapped:
        """Return the facts of all sources about a run."""
        item = self._mapped.get(run.ident)
        if item is None:
            item = self._mapped[run.ident] = _Mapped(run, start=run.start)
        item.run = run
        changed = item.version != self._identities.version
        for source in self._sources:
            facts = source.facts(run)
            if facts is not None and (changed or item.facts.get(source.name) != facts):
                item.facts[source.name] = facts
                resolved = self._resolve(item, source.name, facts)
                if resolved is not None:
                    item.sets[source.name] = resolved
        item.version = self._identities.version if item.sets.keys() == item.facts.keys() else -1
        item.share = self._share(item)
        return item

    def _resolve(self, item: _Mapped, name: MapSource, facts: Facts) -> frozenset[str] | None:
        if not isinstance(facts, PositionFacts):
            return self._identities.of_minors(facts) or None
        if facts.positions and not (self._positions.loaded and self._driver_known(item.run)):
            return None
        found = set()
        for position in facts.positions:
            if (name, position) not in item.devices:
                if self._positions.is_doubtful(position):
                    return None
                item.devices[name, position] = self._positions.device(position)
            device = item.devices[name, position]
            uuid = self._identities.of_device(device) if device is not None else None
            found.add(uuid or f"{MISSING_PREFIX}{self._node}:{position}")
        return frozenset(found)

    def _driver_known(self, run: LocalRun) -> bool:
        return self._identities.known or run.seen_us - (self._first_us or 0) > _NO_DRIVER_US

    def _share(self, item: _Mapped) -> float | None:
        """Return which part of each of its GPUs the run holds, None while unknown."""
        if not self._positions.shared:
            return 1.0
        for facts in (item.facts[name] for name in _TRUST if name in item.facts):
            if isinstance(facts, PositionFacts) and facts.shards is not None:
                devices = [self._positions.device(position) for position in facts.positions]
                total = sum(device.shards for device in devices if device is not None)
                return 1.0 if not facts.shards else min(1.0, facts.shards / total) if total else None
        return None

    def _check(
        self,
        current: Sequence[_Mapped],
        pids: Mapping[str, frozenset[int] | None],
        host_pids: Mapping[int, frozenset[int]],
    ) -> dict[str, UnknownReason]:
        """Compare with the driver's processes and between sources; return the GPUs with contradictions."""
        unmapped: dict[str, UnknownReason] = {}
        by_job = {item.run.job_id: item for item in current if item.run.end_us is None}
        owner = {pid: by_job[job] for job, found in host_pids.items() if job in by_job for pid in found}
        for uuid, found in pids.items():
            if self._identities.has_instances(uuid):
                continue
            for item in {id(owner[pid]): owner[pid] for pid in found or () if pid in owner}.values():
                if uuid in item.gpus:
                    item.own.add(uuid)
                else:
                    unmapped[uuid] = UnknownReason.CONFLICT
                    item.strayed = item.strayed or bool(item.sets)
        for item in current:
            unmapped |= dict.fromkeys(frozenset[str]().union(*item.sets.values()) - item.gpus, UnknownReason.CONFLICT)
        unmapped |= dict.fromkeys(_contested(list(by_job.values())), UnknownReason.CONFLICT)
        return unmapped

    def _holdings(
        self, item: _Mapped, unmapped: Mapping[str, UnknownReason], suspended: frozenset[int]
    ) -> list[GpuAllocation]:
        run = item.run
        if not run.certain:
            return []
        key = RunKey(self._cluster, run.job_id, item.start) if item.start and item.share is not None else None
        stopped = run.job_id in suspended or (not run.pids and self._is_suspended(run))
        found = []
        for uuid in sorted(item.gpus):
            agreeing = sum(uuid in gpus for gpus in item.sets.values()) + (uuid in item.own)
            disputed = any(uuid not in gpus for gpus in item.sets.values())
            strayed = item.strayed and uuid not in item.own
            confidence = Confidence.CONFIRMED if agreeing > 1 else Confidence.SINGLE
            reason = UnknownReason.NOT_IN_NVML if uuid.startswith(MISSING_PREFIX) else UnknownReason.NONE
            if disputed or strayed or uuid in unmapped:
                confidence, reason = Confidence.CONFLICT, UnknownReason.CONFLICT
            share = 1.0 if item.share is None else item.share
            found.append(
                GpuAllocation(run.job_id, uuid, run.since_us, key, share, item.first, confidence, stopped, reason)
            )
        return found

    def _is_suspended(self, run: LocalRun) -> bool:
        answers = (remote.answer(run) for remote in self._remotes.values())
        return any(answer is not None and answer.suspended for answer in answers)

    def _ask(self, now_us: int, current: Sequence[_Mapped], unmapped: Mapping[str, str]) -> None:
        """Queue questions about missing facts. The questions thread drops those that it is already answering."""
        if not self._identities.known and self._positions.loaded and not self._positions.size:
            return  # a node without GPUs
        for item in current:
            run = item.run
            lacking = item.start is None or not item.sets or item.share is None
            # Slurm runs no epilog for a job that ends while slurmd is down: without a socket, ask at intervals.
            stale = now_us - max(run.vouched_us, run.since_us) > _VOUCHED_US
            doubtful = not run.steps and (not run.certain or stale or bool(item.gpus & unmapped.keys()))
            if lacking or doubtful:
                self._questions.ask(run.job_id, run.since_us)
        for ident in self._late:
            self._questions.ask(*ident)

    def _take_answers(self, now_us: int, ended: list[LocalRun]) -> tuple[tuple[int, int, RunKey], ...]:
        late = []
        over = self._late | {run.ident: run for run in ended}
        for answer in self._questions.answers():
            ident = (answer.job_id, answer.since_us)
            run = self._tracker.runs.get(answer.job_id)
            if run is None or run.ident != ident:
                if ident in over and answer.start is not None and _fits(over[ident], answer):
                    late += self._bind(ident, answer)
                continue
            if answer.start is not None and not _fits(run, answer):
                continue  # about another run of the job
            self._remotes[answer.source].put(answer)
            if answer.start is not None:
                self._map(run).start = answer.start
            closed = self._tracker.vouch(run, now_us, answer.running, answer.end and answer.end * 1_000_000)
            if closed is not None:
                ended.append(closed)
        self._late = {ident: run for ident, run in self._late.items() if now_us - (run.end_us or 0) < _LATE_US}
        return tuple(late)

    def _bind(self, ident: tuple[int, int], answer: RunAnswer) -> list[tuple[int, int, RunKey]]:
        """Return the key of a run that ended before its start was known; none while its share is unknown."""
        self._late.pop(ident, None)
        item = self._mapped.get(ident)
        if answer.start is None or (item is not None and item.share is None):
            return []
        if item is not None:
            item.start = answer.start
        return [(*ident, RunKey(self._cluster, answer.job_id, answer.start))]

    def _retire(self, run: LocalRun) -> None:
        item = self._mapped.pop(run.ident, None)
        for remote in self._remotes.values():
            remote.forget(run)
        if item is not None and item.start is None and item.sets and item.share is not None:
            self._late[run.ident] = run

    def _end_us(self, run: LocalRun, current: Sequence[_Mapped]) -> int:
        """Return a run's end, not later than the begin of the next run on one of its GPUs."""
        end_us = run.end_us if run.end_us is not None else run.seen_us
        item = self._mapped.get(run.ident)
        gpus = item.gpus if item is not None and item.share == 1.0 else frozenset()
        later = (other.run.since_us for other in current if other.run is not run and other.gpus & gpus)
        return min([end_us, *(since_us for since_us in later if since_us > run.since_us)])


def _fits(run: LocalRun, answer: RunAnswer) -> bool:
    """Return whether an answer is about this run, not about another one of the same job or id."""
    if answer.start is None or answer.start * 1_000_000 > run.since_us + _AHEAD_US:
        return False
    if (answer.start + 1) * 1_000_000 < run.after_us:
        return False
    if not answer.running and answer.end is not None and (answer.end + 1) * 1_000_000 < run.since_us:
        return False
    return run.restarts is None or answer.restarts is None or answer.restarts == run.restarts


def _contested(current: Sequence[_Mapped]) -> frozenset[str]:
    """Return the GPUs that several runs claim, at least one of them without sharing."""
    shares: dict[str, list[float | None]] = {}
    for item in current:
        for uuid in item.gpus:
            shares.setdefault(uuid, []).append(item.share)
    return frozenset(uuid for uuid, found in shares.items() if len(found) > 1 and 1.0 in found)


def node_sources(node: str, prolog: PrologSource) -> tuple[FactSource, ...]:
    """Return this host's local sources of facts. Data that the user can write (environ, comm, cmdline) is not used."""
    return (prolog, CgroupSource(node, CGROUP_ROOT))


def node_device_map(
    node: str,
    cluster: str,
    positions: PositionTable,
    questions: Questioner,
    *,
    spool_dir: Path,
    prolog: PrologSource,
) -> DeviceMap:
    """Return the device map of this host with all its local sources."""
    sources = node_sources(node, prolog)
    tracker = RunTracker(node, spool_dir, prolog)
    return DeviceMap(node, cluster, tracker=tracker, positions=positions, sources=sources, questions=questions)
