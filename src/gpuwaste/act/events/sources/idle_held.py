"""Source of waste.opened, grown and closed: running jobs that hold idle GPUs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuwaste.act.events.sources import OpenSubjects, SourceSnapshot, SourceStores
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.waste import IdleHeld
from gpuwaste.ledger.held_gpus import HeldRun
from gpuwaste.slurm.run_key import RunKey

_OPENED, _GROWN, _CLOSED = "waste.opened", "waste.grown", "waste.closed"


@dataclass(frozen=True, slots=True)
class _Idle:
    """A run's idle GPUs at an instant: since when, UTC seconds, and the data of their event."""

    run: RunKey
    since: int
    data: IdleHeld


class IdleGpus:
    """Compares the runs with idle GPUs with the reported ones: events when it begins, doubles and ends."""

    def __init__(self, stores: SourceStores) -> None:
        self._open = OpenSubjects(stores.events, _OPENED, _CLOSED, "start")
        self._said: dict[str, tuple[int, float]] = {}  # since when, and the length that was reported last
        self._next: dict[str, tuple[int, float]] = {}
        self._runs: dict[str, int] = {}

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return the events of what began, grew and ended."""
        known = self._open.subjects(seen.now)
        held = {str(one.job.run_key): one for one in seen.held.runs}
        idle = {str(one.run): one for one in _idle(seen)}
        unsure = {subject for subject in known if subject in held and subject not in idle and _unknown(held[subject])}
        self._runs = {subject: one.run.start for subject, one in idle.items()} | {s: known[s] for s in unsure}
        self._next = {subject: self._said[subject] for subject in unsure if subject in self._said}
        news: list[StoredEvent] = []
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
        over = sorted(known.keys() - idle.keys() - unsure)
        return news + [_closed(seen.now, subject, held.get(subject)) for subject in over]

    def told(self) -> None:
        """Record the last result as reported."""
        self._open.replace(self._runs)
        self._said = self._next


def make(stores: SourceStores) -> IdleGpus:
    """Return the source."""
    return IdleGpus(stores)


def _idle(seen: SourceSnapshot) -> Iterator[_Idle]:
    """Yield the runs with GPUs that have been idle for long enough."""
    for held in seen.held.runs:
        gpus = [(gpu, start // 1000) for gpu in held.held if gpu.level == "idle" and (start := gpu.idle_from_ms)]
        since = min((start for _, start in gpus), default=seen.now)
        if seen.now - since >= seen.idle_min_s and gpus:
            run = held.job.run_key
            wasted_s = sum(gpu.wasted_ms for gpu, _ in gpus) / 1000
            yield _Idle(run, since, _told(held, run, len(gpus), float(seen.now - since), wasted_s))


def _told(held: HeldRun, run: RunKey, gpus: int, idle_s: float, wasted_s: float) -> IdleHeld:
    return IdleHeld(run.cluster, run.job_id, run.start, held.job.user, held.job.account, gpus, idle_s, wasted_s)


def _unknown(held: HeldRun) -> bool:
    """Return whether the state of some of its GPUs is unknown: then it is unknown, too, whether they are still idle."""
    return any(gpu.level == "unknown" for gpu in held.held)


def _closed(now: int, subject: str, held: HeldRun | None) -> StoredEvent:
    cluster, _, rest = subject.rpartition("/")
    job_id, _, start = rest.partition("@")
    run = RunKey(cluster, int(job_id), int(start))
    user, account = (held.job.user, held.job.account) if held else ("", "")
    data = IdleHeld(run.cluster, run.job_id, run.start, user, account, 0, 0.0, 0.0)
    return tell(_CLOSED, data, now, run=run, unique=str(now))
