"""The one cluster-wide map: which run holds which positions on which node, queried from slurmctld once for all agents.

Requests of agents that slurmctld must answer are combined: one thread queries slurmctld, with a minimum time between
two queries, and all that wait for a job share the answer.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, Self

from prometheus_client.core import CounterMetricFamily, Metric

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import RunsStored
from gpuwaste.jobs.map_types import HeldOnNode, MapRun
from gpuwaste.jobs.run_store import runs_of_id
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.store.hub.hub_store import HubStore

MANY: Final = 5  # with more unknown jobs than this all jobs are queried
TELL_AGAIN_S: Final = 30.0  # a node that repeats its request after this time has a new run, or restarted: query again
UNKNOWN_FOR_S: Final = 10.0
MAX_ENTRIES: Final = 200_000
_UNANSWERED: Final = log_event.warning(
    "job-map-unanswered: cannot find out which job has a GPU: {error}",
    "slurmctld did not answer; the agent retries. If it continues, check slurmctld.",
)


@dataclass(frozen=True, slots=True)
class JobsSeen:
    """Jobs that slurmctld has just printed."""

    jobs: Sequence[RunningJob]


@dataclass(slots=True)
class _MapEntry:
    """The answer for one job id; `run` None means that slurmctld and accounting have no such run.

    `listed`: the entry is from a query of all jobs, when the id had not been requested. A job's comment can imitate the
    record of a job that does not exist yet, so the first request for the id queries slurmctld for it.
    """

    run: MapRun | None
    asked_us: int
    listed: bool = False
    told: set[str] = field(default_factory=set)

    def holds(self, node: str) -> bool:
        return self.run is not None and node in self.run.nodes


Answer = list[MapRun]


class GpuAssignments(Part):
    """Answers from memory, and queries slurmctld for what is missing."""

    def __init__(
        self,
        slurm: SlurmClient,
        store: HubStore,
        site: ClusterFacts,
        clock: Clock,
        min_interval_s: float = 2.0,
        *,
        publish: Callable[[JobsSeen], object] = lambda _: None,
    ) -> None:
        self._slurm = slurm
        self._store = store
        self._site = site
        self._clock = clock
        self.min_interval_s = min_interval_s
        self._publish = publish
        self._lock = threading.RLock()
        self._entries: dict[int, _MapEntry] = {}
        self._waiting: dict[int, list[tuple[str, Future[Answer]]]] = {}
        self._waiting_nodes: list[tuple[str, Future[Answer]]] = []
        self._all_known = False
        self._worker = Worker("map", self._turn, clock)
        self.questions: Counter[str] = Counter()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        ports, least_s = parts.get(HostPorts), parts.get(Config).hub.map_min_interval_s
        store, site, bus = parts.get(HubStore), parts.get(ClusterFacts), parts.get(Bus)
        part = cls(ports.slurm, store, site, ports.clock, least_s, publish=bus.publish)
        bus.subscribe(RunsStored, lambda event: part.learn(event.records))
        return part

    def before_start(self) -> None:
        """Start the thread."""
        self.start()

    @property
    def reloads(self) -> Reloads:
        """The minimum interval between queries to slurmctld."""
        return {("hub.map_min_interval_s",): lambda c: setattr(self, "min_interval_s", c.hub.map_min_interval_s)}

    def metrics(self) -> Iterable[Metric]:
        """Yield the number of queries to slurmctld."""
        return question_families(dict(self.questions))

    def start(self) -> None:
        """Start the query thread."""
        self._worker.start()

    def close(self) -> None:
        """End the thread; pending requests fail with an error."""
        self._worker.stop(2.0)
        with self._lock:
            self._fail(GpuwasteError("the hub stops"))

    def ask(self, node: str, job_id: int) -> "Future[Answer]":
        """Return the run that holds the job's id, as a list of none or one, for an agent on `node`."""
        future: Future[Answer] = Future()
        with self._lock:
            entry = self._entries.get(job_id)
            if entry is not None and self._fresh(entry, node):
                entry.told.add(node)
                future.set_result(_answer(entry))
            else:
                self._waiting.setdefault(job_id, []).append((node, future))
                self._worker.wake()
        return future

    def ask_node(self, node: str) -> "Future[Answer]":
        """Return every run known to hold something on `node`; the first such request loads the entire cluster."""
        future: Future[Answer] = Future()
        with self._lock:
            if self._all_known:
                future.set_result(self._of_node(node))
            else:
                self._waiting_nodes.append((node, future))
                self._worker.wake()
        return future

    def learn(self, records: Iterable[JobRecord]) -> None:
        """Forget runs that accounting has ended, or replaced by another run of the same job."""
        with self._lock:
            for record in records:
                entry = self._entries.get(record.job_id)
                if entry is None or entry.run is None:
                    continue
                start = entry.run.start
                if (record.start == start and record.ended) or (record.start is not None and record.start > start):
                    del self._entries[record.job_id]

    def _fresh(self, entry: _MapEntry, node: str) -> bool:
        age_s = (self._clock.mono_us() - entry.asked_us) / 1e6
        if entry.run is None:
            return age_s < UNKNOWN_FOR_S
        if entry.listed:
            return False
        return age_s < TELL_AGAIN_S or (node not in entry.told and entry.holds(node))

    def _of_node(self, node: str) -> Answer:
        return [e.run for e in self._entries.values() if e.run is not None and e.holds(node)]

    def _turn(self) -> float | None:
        if not (self._waiting or self._waiting_nodes):
            return None
        self.step()
        self._clock.wait(self._worker.stopping, self.min_interval_s)  # new requests do not shorten this wait
        return 0.0

    def step(self) -> None:
        """Run one query for the waiting requests, and answer all that it covers."""
        with self._lock:
            wanted = list(self._waiting)
            everything = bool(self._waiting_nodes) or len(wanted) > MANY
        if not wanted and not everything:
            return
        asked = wanted if everything else wanted[:1]
        try:
            if everything:
                self.questions["jobs"] += 1
                jobs = self._slurm.jobs()
            else:
                self.questions["job"] += 1
                jobs = self._slurm.job(asked[0])
            self._settle(asked, jobs, everything=everything)
            self._publish(JobsSeen(jobs))
        except GpuwasteError as error:
            _UNANSWERED.log(error=error)
            with self._lock:
                self._fail(error)

    def _settle(self, asked: list[int], jobs: list[RunningJob], *, everything: bool) -> None:
        now_us = self._clock.mono_us()
        found = {job.job_id: _MapEntry(_run(job, job.start), now_us) for job in jobs if job.start is not None}
        live = {job.job_id for job in jobs}
        for job_id in asked:
            if job_id not in live:
                found[job_id] = _MapEntry(self._from_accounting(job_id), now_us)
        with self._lock:
            if everything:
                self._all_known = True
            if len(self._entries) + len(found) > MAX_ENTRIES:
                self._entries.clear()
            for job_id, entry in found.items():
                before = self._entries.get(job_id)
                known = job_id in asked or job_id in self._waiting or (before is not None and not before.listed)
                entry.listed = not known
            self._entries.update(found)
            for job_id in [j for j in self._waiting if j in found or j in asked]:
                entry = found.get(job_id, _MapEntry(None, now_us))
                for node, future in self._waiting.pop(job_id):
                    entry.told.add(node)
                    future.set_result(_answer(entry))
            if everything:
                for node, future in self._waiting_nodes:
                    future.set_result(self._of_node(node))
                self._waiting_nodes = []

    def _from_accounting(self, job_id: int) -> MapRun | None:
        """Return the newest run of a job that slurmctld has forgotten: its nodes, without positions.

        A run that has not ended in accounting gets no nodes here: only slurmctld, queried for this one job, knows what
        it holds, and "no positions" would count as an answer.
        """
        for record in runs_of_id(self._store, self._site.cluster(), job_id):
            if record.start is not None:
                held = expand(record.nodes) if record.ended and record.nodes else ()
                nodes = dict.fromkeys(held, HeldOnNode(()))
                return MapRun(job_id, record.start, record.restarts, record.state, record.state == "SUSPENDED", nodes)
        return None

    def _fail(self, error: GpuwasteError) -> None:
        waiting = [pair for pairs in self._waiting.values() for pair in pairs] + self._waiting_nodes
        self._waiting, self._waiting_nodes = {}, []
        for _, future in waiting:
            future.set_exception(error)


def _answer(entry: _MapEntry) -> Answer:
    return [] if entry.run is None else [entry.run]


def _run(job: RunningJob, start: int) -> MapRun:
    suspended = job.state == "SUSPENDED" or job.suspended_at is not None
    nodes = {name: HeldOnNode(gres.positions, gres.shards) for name, gres in job.nodes.items()}
    return MapRun(job.job_id, start, job.restarts, job.state, suspended, nodes)


def question_families(questions: Mapping[str, int]) -> Iterator[Metric]:
    """Yield the queries to slurmctld by kind."""
    asked = CounterMetricFamily(
        "gpuwaste_hub_map_questions", "Queries to slurmctld for the device map.", labels=["kind"]
    )
    for kind, count in sorted(questions.items()):
        asked.add_metric([kind], count)
    yield asked
