"""EASY, conservative, FCFS and SJF by their definitions, slowly: no structure is kept from one instant to the next."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class Job(NamedTuple):
    """A job of a trace; seconds and processors."""

    submit: int
    run: int
    believed: int
    limit: int
    procs: int
    user: int = 0


@dataclass
class State:
    """What is known at an instant: jobs by their number in the trace."""

    jobs: list[Job]
    total: int
    now: int = 0
    again: bool = False  # the same instant, since jobs without length have ended in it
    waiting: list[int] = field(default_factory=list)
    start: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    promised: dict[int, int] = field(default_factory=dict)
    recent: dict[int, list[int]] | None = None  # run times of each user's ended jobs; None: nobody looks at them

    @property
    def running(self) -> list[int]:
        return [j for j in self.start if j not in self.ended]

    @property
    def free(self) -> int:
        return self.total - sum(self.jobs[j].procs for j in self.running)

    def expected(self, job: int) -> int:
        """Return when a running job is believed to end: as was believed, then by its limit."""
        end = self.start[job] + self.jobs[job].believed
        return end if end > self.now else max(self.start[job] + self.jobs[job].limit, self.now + 1)

    def learn(self, ended: list[int]) -> None:
        """Keep what a user's jobs ran, in the order of their ends."""
        for job in ended:
            if self.recent is not None:
                self.recent.setdefault(self.jobs[job].user, []).append(self.jobs[job].run)

    def believe(self, new: list[int]) -> None:
        """Believe of a submitted job the mean of its user's last two, at most the limit."""
        for job in new:
            if self.recent is None:
                return
            asked, runs = self.jobs[job], self.recent.get(self.jobs[job].user, [])
            mean = max(1, min(asked.limit, sum(runs[-2:]) // 2)) if len(runs) > 1 else asked.limit
            self.jobs[job] = asked._replace(believed=mean)

    def begin(self, job: int) -> None:
        self.waiting.remove(job)
        self.start[job] = self.now


def played(
    jobs: list[Job], total: int, decide: Callable[[State, bool, list[int]], None], *, recent: bool = False
) -> list[int]:
    """Return the starts that a scheduler decides on; it is asked at each instant at which anything may change."""
    state = State(list(jobs), total, recent={} if recent else None)
    last = -1
    while len(state.ended) < len(jobs):
        instants = [job.submit for k, job in enumerate(jobs) if job.submit > last]
        instants += [state.start[j] + jobs[j].run for j in state.running]
        instants += [t for j in state.running for t in (state.start[j] + state.jobs[j].believed,) if t > last]
        instants += [state.promised[j] for j in state.waiting if j in state.promised and state.promised[j] > last]
        state.now = min(instants)
        state.again = state.now == last
        ends = sorted(j for j in state.running if state.start[j] + jobs[j].run == state.now)
        state.ended.update(ends)
        state.learn(ends)
        new = [k for k, job in enumerate(jobs) if job.submit == state.now and not state.again]
        state.waiting += new
        state.believe(new)
        decide(state, bool(ends), new)
        last = state.now
    return [state.start[j] for j in range(len(jobs))]


def in_order(key: Callable[[Job], int]) -> Callable[[State, bool, list[int]], None]:
    """Return the scheduler that starts the waiting jobs by a key, none before the one in front."""

    def decide(state: State, _ended: bool, _new: list[int]) -> None:
        for job in sorted(state.waiting, key=lambda j: (key(state.jobs[j]), j)):
            if state.jobs[job].procs > state.free:
                break
            state.begin(job)

    return decide


def easy(state: State, _ended: bool, _new: list[int]) -> None:
    """Start in order; then reserve for the first that does not fit, and start whatever does not delay it."""
    while state.waiting and state.jobs[state.waiting[0]].procs <= state.free:
        state.begin(state.waiting[0])
    if not state.waiting:
        return
    head = state.jobs[state.waiting[0]]
    for job in list(state.waiting[1:]):
        ends = {j: state.expected(j) for j in state.running}
        shadow = min(t for t in ends.values() if free_at(state, ends, t) >= head.procs)
        extra = free_at(state, ends, shadow) - head.procs
        asked = state.jobs[job]
        if asked.procs <= state.free and (state.now + asked.believed <= shadow or asked.procs <= extra):
            state.begin(job)


def free_at(state: State, ends: dict[int, int], time: int) -> int:
    """Return the processors that are free once the jobs have ended that are believed to end by then."""
    return state.free + sum(state.jobs[j].procs for j, end in ends.items() if end <= time)


def conservative(state: State, ended: bool, new: list[int]) -> None:
    """Promise every job a start; promises move to earlier gaps when jobs have ended, in the order of submission."""
    if not state.again and any(state.start[j] + state.jobs[j].believed == state.now for j in state.running):
        old = [j for j in state.waiting if j not in new]
        for job in old:
            del state.promised[job]
        for job in old:
            state.promised[job] = _gap(state, job)
    elif ended:
        for job in state.waiting:
            if job not in new:
                del state.promised[job]
                state.promised[job] = _gap(state, job)
    for job in new:
        state.promised[job] = _gap(state, job)
    for job in [j for j in state.waiting if state.promised[j] == state.now]:
        state.begin(job)


def _gap(state: State, job: int) -> int:
    held = [(state.now, state.expected(j), state.jobs[j].procs) for j in state.running]
    for j, begin in state.promised.items():
        if j in state.waiting:
            held.append((begin, begin + state.jobs[j].believed, state.jobs[j].procs))
    asked = state.jobs[job]
    for begin in sorted({state.now, *(end for _, end, _ in held)}):
        steps = {begin, *(t for t, _, _ in held if begin <= t < begin + asked.believed)}
        if all(sum(p for b, e, p in held if b <= t < e) + asked.procs <= state.total for t in steps):
            return begin
    raise AssertionError("no gap, though every job fits the machine")
