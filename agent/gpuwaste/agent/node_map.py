"""NodeMap: which job has which GPU of this node, and the thread that asks hub and slurmctld for missing facts.

At most one question per run is open. Normally the hub knows the answer and slurmctld is not asked; while the hub is
unreachable, the jitter keeps the nodes of one job from asking at once, and the hub is asked again before slurmctld.
"""

import heapq
import random
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from gpuwaste.agent.agent_ports import AgentPorts
from gpuwaste.agent.facts.gpu_identities import PositionTable
from gpuwaste.agent.facts.prolog_files import PrologSource
from gpuwaste.agent.facts.remote import GONE, RunAnswer
from gpuwaste.core.clock import Clock
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError
from gpuwaste.core.job_states import WAITING
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Worker, backoff_s
from gpuwaste.jobs.map_types import MapAnswer, MapRun
from gpuwaste.ledger.gpu_sample import MapSource
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob

_JITTER_INTERVALS: Final = 3  # over which the nodes of one job spread their questions to slurmctld
_MAX_OPEN: Final = 1000
_BACKOFF_S: Final = (30.0, 900.0)
_CHORE_S: Final = 30.0
_AGAIN_S: Final = 60.0  # an answered question may be asked again after this


class NodeMap(Part):
    """The map with the parts that it needs."""

    def __init__(self, parts: Parts) -> None:
        agent, ports = parts.get(Config).agent, parts.get(AgentPorts)
        site, slurm = ports.site, ports.slurm
        self.positions = PositionTable(lambda: slurm.device_list(site.node), site.slurm_files, site.slurmd_pid)
        self.positions.check()
        self.questions = Questions(
            site.node,
            ports.hub,
            slurm if agent.ask_slurmctld else None,
            ports.clock,
            jitter_s=agent.interval_s * _JITTER_INTERVALS,
            chores=(self.positions.check,),
        )
        self.worker = self.questions.worker
        self.devices = ports.edges.device_map(
            site.node,
            site.cluster,
            self.positions,
            self.questions,
            spool_dir=site.spool_dir,
            prolog=PrologSource(Path(agent.jobs_dir)),
        )


class MapHub(Protocol):
    """The hub's read requests (wire.client.HubClient)."""

    def get(self, path: str, params: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at `path`. Raises GpuwasteError."""
        ...


class JobAsker(Protocol):
    """The part of SlurmClient that is needed here."""

    def job(self, job_id: int) -> list[RunningJob]:
        """Return the records of one job. Raises GpuwasteError."""
        ...


@dataclass(order=True, slots=True)
class _Question:
    due_us: int
    ident: tuple[int, int]
    tries: int = field(default=0, compare=False)


class Questions:
    """`ask` and `answers` never block and are for the sampling thread; the rest runs in a separate thread."""

    def __init__(
        self,
        node: str,
        hub: MapHub | None,
        slurm: JobAsker | None,
        clock: Clock,
        *,
        jitter_s: float,
        chores: Sequence[Callable[[], None]] = (),
        rng: random.Random | None = None,
    ) -> None:
        """Answer for `node`; `chores` are called every 30 s in the same thread (PositionTable.check)."""
        self._node = node
        self._hub = hub
        self._slurm = slurm
        self._clock = clock
        self._jitter_s = jitter_s
        self._chores = tuple(chores)
        self._rng = rng or random.Random()  # noqa: S311 spreads load, keeps no secret
        self._lock = threading.Lock()
        self._due: list[_Question] = []
        self._open: set[tuple[int, int]] = set()
        self._answered: dict[tuple[int, int], int] = {}  # when, monotonic microseconds
        self._answers: deque[RunAnswer] = deque(maxlen=_MAX_OPEN)
        self._chores_us: int | None = None
        self.worker = Worker("questions", self.step, clock)
        self.slurmctld_questions = 0
        self.dropped = 0
        self.health = ""

    def ask(self, job_id: int, since_us: int) -> None:
        """Queue a question about a run, unless it is open already, was answered recently, or too many are open."""
        ident, now_us = (job_id, since_us), self._clock.mono_us()
        with self._lock:
            answered = self._answered.get(ident)
            if ident in self._open or (answered is not None and now_us - answered < _AGAIN_S * 1e6):
                return
            if len(self._open) >= _MAX_OPEN:
                self.dropped += 1
                return
            self._open.add(ident)
            heapq.heappush(self._due, _Question(now_us, ident))
        self.worker.wake()

    def answers(self) -> list[RunAnswer]:
        """Return the answers since the last call."""
        found = []
        while self._answers:
            found.append(self._answers.popleft())
        return found

    def step(self) -> float:
        """Process what is due, at most one question, and return the seconds until something is due again."""
        now_us = self._clock.mono_us()
        if self._chores_us is None or now_us >= self._chores_us:
            self._chores_us = now_us + int(_CHORE_S * 1e6)
            for chore in self._chores:
                chore()
        with self._lock:
            question = heapq.heappop(self._due) if self._due and self._due[0].due_us <= now_us else None
        if question is not None:
            self._work(question)
        with self._lock:
            next_us = min([self._chores_us, *(item.due_us for item in self._due[:1])])
        return max(0.0, (next_us - self._clock.mono_us()) / 1e6)

    def _work(self, question: _Question) -> None:
        answer = self._ask_hub(question.ident)
        if answer is None and (question.tries or self._hub is None):
            answer = self._ask_slurmctld(question.ident)
        now_us = self._clock.mono_us()
        with self._lock:
            if answer is not None:
                self._answers.append(answer)
                self._open.discard(question.ident)
                self._answered[question.ident] = now_us
                self._answered = dict(list(self._answered.items())[-_MAX_OPEN:])
                return
            question.tries += 1
            question.due_us = now_us + int(self._delay_s(question.tries) * 1e6)
            heapq.heappush(self._due, question)

    def _delay_s(self, tries: int) -> float:
        """Return the wait before the next try: the jitter before the first question to slurmctld, then backoff."""
        if tries == 1:
            return self._rng.uniform(0.0, self._jitter_s)
        low, high = _BACKOFF_S
        return backoff_s(tries - 1, low, high) * self._rng.uniform(0.5, 1.0)

    def _ask_hub(self, ident: tuple[int, int]) -> RunAnswer | None:
        if self._hub is None:
            return None
        try:
            document = self._hub.get("/v1/map", {"node": self._node, "job": str(ident[0])})
            jobs = convert(document, MapAnswer, "the hub's map").jobs
        except NoDataError:
            return None
        except GpuwasteError as error:
            self.health = f"hub: {error}"
            return None
        self.health = ""
        return of_map(jobs, self._node, ident)

    def _ask_slurmctld(self, ident: tuple[int, int]) -> RunAnswer | None:
        if self._slurm is None:
            return None
        self.slurmctld_questions += 1
        try:
            jobs = self._slurm.job(ident[0])
        except GpuwasteError as error:
            self.health = f"slurmctld: {error}"
            return None
        self.health = ""
        for job in jobs:
            if job.job_id == ident[0]:
                return self._of_job(job, ident)
        return RunAnswer(*ident, MapSource.SLURMCTLD, GONE)

    def _of_job(self, job: RunningJob, ident: tuple[int, int]) -> RunAnswer | None:
        held = job.nodes.get(self._node)
        if job.state in WAITING or (held is None and job.nodes):
            return None  # a requeued job that is pending, or another run of it elsewhere
        return RunAnswer(
            *ident,
            MapSource.SLURMCTLD,
            job.state,
            start=job.start,
            end=job.end,
            restarts=job.restarts,
            positions=frozenset(held.positions) if held else None,
            shards=held.shards if held else 0,
            gpus=held.gpus if held else None,
            suspended=job.state == "SUSPENDED",
        )


def of_map(jobs: Sequence[MapRun], node: str, ident: tuple[int, int]) -> RunAnswer | None:
    """Return the entry of the hub's map for a run on this node; None if it has only other jobs or other nodes."""
    for run in jobs:
        held = run.nodes.get(node)
        if run.job_id == ident[0] and held is not None:
            return RunAnswer(
                *ident,
                MapSource.HUB,
                run.state,
                start=run.start,
                restarts=run.restarts,
                positions=frozenset(held.positions),
                shards=held.shards,
                suspended=run.suspended,
            )
    return None
