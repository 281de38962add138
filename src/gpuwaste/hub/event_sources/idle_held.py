"""Source of waste.opened, grown and closed: running jobs that hold GPUs which do nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuwaste.core.run import RunKey
from gpuwaste.core.told_event import ToldEvent
from gpuwaste.events.envelope import run_subject, tell
from gpuwaste.events.kinds.waste import IdleHeld
from gpuwaste.hub.event_sources import Seen, SourceStores
from gpuwaste.hub.event_sources._open import Open
from gpuwaste.waste.held import HeldRun

_OPENED, _GROWN, _CLOSED = "waste.opened", "waste.grown", "waste.closed"


@dataclass(frozen=True, slots=True)
class _Idle:
    """A run's idle GPUs at an instant: since when, UTC seconds, and what is told of them."""

    run: RunKey
    since: int
    data: IdleHeld


class IdleGpus:
    """Compares the runs with idle GPUs with those that were told: events as it begins, when it doubles, as it ends."""

    def __init__(self, stores: SourceStores) -> None:
        self._open = Open(stores.events, _OPENED, _CLOSED, "start")
        self._said: dict[str, tuple[int, float]] = {}  # since when, and the length that was told last
        self._next: dict[str, tuple[int, float]] = {}
        self._runs: dict[str, int] = {}

    def events(self, seen: Seen) -> Sequence[ToldEvent]:
        """Return what has begun, grown and ended."""
        known = self._open.subjects(seen.now)
        idle = {run_subject(one.run): one for one in _idle(seen)}
        self._runs = {subject: one.run.start for subject, one in idle.items()}
        self._next = {}
        news: list[ToldEvent] = []
        for subject, one in idle.items():
            since, before = self._said.get(subject, (one.since, 0.0))
            length = one.data.idle_s
            if subject not in known:
                news.append(tell(_OPENED, one.data, seen.now, run=one.run, unique=str(one.since)))
            elif before and length >= 2 * before:
                news.append(tell(_GROWN, one.data, seen.now, run=one.run, unique=f"{since} {length:.0f}"))
            else:
                length = before or length
            self._next[subject] = (since, length)
        return news + list(_closed(seen, known.keys() - idle.keys()))

    def told(self) -> None:
        """Note it."""
        self._open.replace(self._runs)
        self._said = self._next


def make(stores: SourceStores) -> IdleGpus:
    """Return the source."""
    return IdleGpus(stores)


def _idle(seen: Seen) -> Iterator[_Idle]:
    """Yield the runs with GPUs that have been idle for long enough."""
    for held in seen.held.runs:
        gpus = [(gpu, start // 1000) for gpu in held.held if gpu.level == "idle" and (start := gpu.idle_from_ms)]
        since = min((start for _, start in gpus), default=seen.now)
        if seen.now - since >= seen.idle_min_s and gpus:
            run = RunKey(held.cluster, held.job_id, held.run_start)
            wasted_s = sum(gpu.wasted_ms for gpu, _ in gpus) / 1000
            yield _Idle(run, since, _told(held, run, len(gpus), float(seen.now - since), wasted_s))


def _told(held: HeldRun, run: RunKey, gpus: int, idle_s: float, wasted_s: float) -> IdleHeld:
    return IdleHeld(run.cluster, run.job_id, run.start, held.user, held.account, gpus, idle_s, wasted_s)


def _closed(seen: Seen, subjects: Sequence[str] | set[str]) -> Iterator[ToldEvent]:
    running = {run_subject(RunKey(held.cluster, held.job_id, held.run_start)): held for held in seen.held.runs}
    for subject in sorted(subjects):
        held = running.get(subject)
        cluster, _, rest = subject.rpartition("/")
        job_id, _, start = rest.partition("@")
        run = RunKey(cluster, int(job_id), int(start))
        user, account = (held.user, held.account) if held else ("", "")
        data = IdleHeld(run.cluster, run.job_id, run.start, user, account, 0, 0.0, 0.0)
        yield tell(_CLOSED, data, seen.now, run=run, unique=str(seen.now))
