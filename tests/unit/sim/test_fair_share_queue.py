"""The queue by fair share against a plain definition second by second, and the traps of chains and usage."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.sim.fair_share_queue import QueueSettings, Weights, ordered, starts_by_priority
from gpuwaste.sim.schedulers import fair_share
from gpuwaste.sim.trace import Planned

CYCLE, CALC, WINDOW, DECAY = 4, 10, 60, 0.99
WEIGHTS = Weights(fair_share=1000, age=500, size=100, max_age_s=100)
PERIODS = QueueSettings(CYCLE, CALC, WINDOW, DECAY)


class Job:
    """A job of the plain definition."""

    def __init__(self, place: int, submit: int, run: int, limit: int, procs: int, user: int, after: int) -> None:  # noqa: PLR0917 a row of a drawn trace
        self.place, self.submit, self.run, self.limit, self.procs = place, submit, run, limit, procs
        self.user, self.after = user, after
        self.eligible = self.start = -1

    def __repr__(self) -> str:
        return f"Job{(self.place, self.submit, self.run, self.limit, self.procs, self.user, self.after)}"

    def running(self, now: int) -> bool:
        return self.start >= 0 and now < self.start + self.run


def rank(usage: list[float]) -> list[float]:
    """Return the fair share of users of equal shares, each in an account of its own."""
    order = sorted(range(len(usage)), key=lambda user: (usage[user], user))
    share = [0.0] * len(usage)
    tied = {user for a, user in pairwise(order) if usage[a] == usage[user]}
    above = 0.0
    for place, user in enumerate(order):
        above = above if user in tied else (len(usage) - place) / len(usage)
        share[user] = above
    return share


def earliest(jobs: list[Job], booked: list[tuple[int, int, int]], job: Job, total: int, now: int) -> int:
    """Return the first second at which a job has its processors for its whole limit."""
    held = [(each.start, each.start + each.limit, each.procs) for each in jobs if each.running(now)] + booked
    when = now
    while True:
        for second in range(when, when + job.limit):
            if sum(procs for begin, end, procs in held if begin <= second < end) + job.procs > total:
                break
        else:
            return when
        when += 1


def played(jobs: list[Job], total: int, usage: list[float], notice: int) -> list[int]:
    """Return the starts, by looking at every second."""
    share, begin = rank(usage), min(job.submit for job in jobs if job.after < 0)
    changed, now = False, begin
    while any(job.start < 0 for job in jobs):
        waiting = [job for job in jobs if job.eligible >= 0 and job.start < 0]
        if now > begin and (now - begin) % CALC == 0:
            usage = [used * DECAY**CALC for used in usage]
            for job in jobs:
                ran = min(now, job.start + job.run) - max(job.start, now - CALC)
                ended = job.start + job.run < now
                if job.start >= 0 and ran > 0 and not ended:
                    usage[job.user] += ran * DECAY**ran * job.procs
            share = rank(usage)
            changed = changed or bool(waiting)
        just = [job for job in jobs if job.start >= 0 and job.start + job.run == now]
        for job in just:
            last_calc = begin + (now - begin) // CALC * CALC
            ran = now - max(job.start, last_calc)
            if ran > 0:
                usage[job.user] += ran * DECAY**ran * job.procs
            changed = True
        for job in jobs:
            needs = jobs[job.after] if job.after >= 0 else None
            over = needs is None or (needs.start >= 0 and needs.start + needs.run + notice <= now)
            if job.eligible < 0 and job.submit <= now and over:
                job.eligible, changed = now, True
        waiting = [job for job in jobs if job.eligible >= 0 and job.start < 0]
        full = (now - begin) % CYCLE == 0
        if waiting and changed and (full or just):
            by_priority = sorted(
                waiting, key=lambda job: (-worth(job, now, share[job.user], total), job.eligible, job.place)
            )
            decide(jobs, by_priority, total, now, full=full)
            changed = changed and not full
        now += 1
    return [job.start for job in jobs]


def worth(job: Job, now: int, share: float, total: int) -> int:
    age = min(1.0, (now - job.eligible) / WEIGHTS.max_age_s) * WEIGHTS.age
    return int(max(1.0, age + share * WEIGHTS.fair_share + WEIGHTS.size * job.procs / total))


def decide(jobs: list[Job], waiting: list[Job], total: int, now: int, *, full: bool) -> None:
    booked: list[tuple[int, int, int]] = []
    for job in waiting:
        idle = total - sum(each.procs for each in jobs if each.running(now))
        if not full and job.procs > idle:
            return
        when = earliest(jobs, booked, job, total, now) if full else now
        if when > now + WINDOW:
            continue
        if when == now:
            job.start = now
        else:
            booked.append((when, when + job.limit, job.procs))


@st.composite
def traces(draw: st.DrawFn) -> tuple[list[Job], int, list[float], int]:
    """Draw small crowded machines, users with usage, and chains."""
    total, users = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    rows = []
    for _ in range(draw(st.integers(1, 14))):
        run = draw(st.integers(1, 12))
        limit = run + draw(st.integers(0, 6))
        rows.append(
            (draw(st.integers(0, 25)), run, limit, draw(st.integers(1, total)), draw(st.integers(0, users - 1)))
        )
    rows.sort()
    jobs: list[Job] = []
    for place, row in enumerate(rows):
        after = draw(st.integers(-3, place - 1)) if place else -1
        taken = {job.after for job in jobs}
        jobs.append(Job(place, *row, max(after, -1) if after not in taken else -1))
    return jobs, total, [float(draw(st.integers(0, 60))) for _ in range(users)], draw(st.integers(0, 3))


def compiled(jobs: list[Job], total: int, usage: list[float], last: int | None = None, *, notice: int = 0) -> list[int]:
    def column(name: str) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.array([getattr(job, name) for job in jobs], dtype=np.int64)

    user = column("user")
    planned = Planned(column("submit"), column("run"), column("limit"), column("limit"), column("procs"), user[:0])
    owners = [(f"a{k}", f"u{k}") for k in range(len(usage))]
    by = ordered(planned, total, owners, user, np.array(usage), WEIGHTS, column("after"), last, notice)
    start, _ = starts_by_priority(planned, total, by, PERIODS)
    found: list[int] = start.tolist()
    return found


@pytest.mark.long
@settings(max_examples=examples(100))
@given(drawn=traces())
def test_each_start_is_the_definitions(drawn: tuple[list[Job], int, list[float], int]) -> None:
    """Each job starts in the second in which the plain definition starts it."""
    jobs, total, usage, notice = drawn
    assert compiled(jobs, total, usage, notice=notice) == played(jobs, total, list(usage), notice)


def job(place: int, submit: int, run: int, procs: int, user: int = 0, *, after: int = -1) -> Job:
    return Job(place, submit, run, run, procs, user, after)


def test_who_used_less_starts_first() -> None:
    """Of three jobs that each need the machine, the user with the least usage is first, whoever submitted first."""
    jobs = [job(0, 0, 8, 4, 0), job(1, 0, 8, 4, 1), job(2, 0, 8, 4, 2)]
    assert compiled(jobs, 4, [50.0, 10.0, 30.0]) == [16, 0, 8]


def test_backfill_delays_nobody_above() -> None:
    """A short job passes a wide one that waits for the machine; a long one of less priority does not."""
    jobs = [job(0, 0, 20, 3, 0), job(1, 1, 8, 4, 1), job(2, 1, 8, 1, 2), job(3, 1, 40, 1, 3)]
    starts = compiled(jobs, 4, [0.0, 1.0, 2.0, 3.0])
    assert starts == [0, 20, 4, 28]


def test_a_chain_is_submitted_as_its_predecessor_ends() -> None:
    """A job of a chain starts as the one before it ends where that is noticed at once, else in the next cycle."""
    jobs = [job(0, 0, 9, 1), job(1, 0, 9, 1, after=0), job(2, 0, 9, 1, after=1)]
    assert compiled(jobs, 4, [0.0]) == [0, 9, 18]
    assert compiled(jobs, 4, [0.0], notice=1) == [0, 12, 24]


def test_a_simulation_may_end_with_the_jobs_that_are_wanted() -> None:
    """The starts of the last jobs are the same where only theirs are wanted."""
    jobs = [job(k, k, 9, 2, k % 2) for k in range(8)]
    jobs.append(job(8, 3, 5, 3, 2))
    usage = [0.0, 5.0, 2.0]
    assert compiled(jobs, 4, usage, last=1)[-1] == compiled(jobs, 4, usage)[-1]


def test_the_scheduler_gives_light_users_short_waits() -> None:
    """Of two users who share a machine, the one with a job now and then waits less than the one with many."""
    heavy = [(0, 600, 4, 0)] * 30
    light = [(k * 3000, 600, 4, 1) for k in range(1, 4)]
    rows = sorted([*heavy, *light])
    submit, run, procs, user = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    planned = Planned(submit, run, run, run, procs, user[:0])
    wait = fair_share.starts_by_user(planned, 4, user) - submit
    assert wait[user == 1].max() <= 660
    assert wait[user == 0].max() > 15_000
