"""The answers of the hub and slurmctld about a run: start, state, positions on this node."""

from dataclasses import dataclass
from typing import Final

from gpuwaste.agent.facts.run_facts import LocalRun, PositionFacts
from gpuwaste.core.job_states import HOLDING
from gpuwaste.ledger.gpu_sample import MapSource

RUNNING: Final = HOLDING - {"COMPLETING"}
GONE: Final = "GONE"  # the hub or slurmctld does not know the job (any more)


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """One answer, to the question about a run (job_id, since_us); `start` and `end` are UTC seconds.

    Of a run of the hub's map (MapRun) it is the part of this node, at the start that local facts give.
    """

    job_id: int
    since_us: int
    source: MapSource
    state: str
    start: int | None = None
    end: int | None = None
    restarts: int | None = None
    positions: frozenset[int] | None = None  # None where unknown (Slurm omits them for a suspended job)
    shards: int = 0
    gpus: int | None = None  # how many full GPUs here, also where positions are unknown
    suspended: bool = False

    @property
    def running(self) -> bool:
        """Whether the job held its GPUs at the time of this answer."""
        return self.state in RUNNING


class RemoteSource:
    """The answers of either the hub or slurmctld."""

    def __init__(self, name: MapSource) -> None:
        self.name = name
        self.health = ""
        self._answers: dict[tuple[int, int], RunAnswer] = {}

    def put(self, answer: RunAnswer) -> None:
        """Store an answer, with the positions of an earlier one if it has none (a job that is ending)."""
        ident = (answer.job_id, answer.since_us)
        known = self._answers.get(ident)
        if known is None or (answer.running and (answer.positions is not None or known.positions is None)):
            self._answers[ident] = answer

    def forget(self, run: LocalRun) -> None:
        """Drop the answers about a run that ended."""
        self._answers.pop(run.ident, None)

    def answer(self, run: LocalRun) -> RunAnswer | None:
        """Return the full answer."""
        return self._answers.get(run.ident)

    def facts(self, run: LocalRun) -> PositionFacts | None:
        """Return the positions; an empty set is "no GPU here"."""
        answer = self._answers.get(run.ident)
        if answer is None or not answer.running or answer.positions is None:
            return None
        if not answer.positions and (answer.gpus or answer.shards):
            return None
        return PositionFacts(answer.positions, answer.shards)
