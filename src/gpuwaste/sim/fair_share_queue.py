"""A queue ordered by multifactor priority with Fair Tree, on a count of processors, with backfill: for compiled loops.

What is modelled of Slurm: the main loop starts jobs by priority until one does not fit, whenever jobs have ended and
every `cycle_s`; backfill, every `cycle_s`, gives each waiting job by priority its earliest start that delays none
above it and starts those that may start now; jobs that are submitted wait for the next cycle
(SchedulerParameters=defer); usage is charged and decays, and fair share is ranked again, every `calc_s`. What is left
out: nodes, partitions, limits, the yields and depth of a cycle, bf_resolution.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.units import DAY_S, WEEK_S
from gpuwaste.sim.accounts import AccountTree, accounts_of
from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.ends import earliest, pop, push, take
from gpuwaste.sim.fair_tree import charge, decay, decay_per_second, fair_tree
from gpuwaste.sim.multifactor import Weighted, priority
from gpuwaste.sim.trace import Planned
from gpuwaste.slurm.site.cluster_model import Association

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class QueueSettings(NamedTuple):
    """Periods in seconds; `decays` is what remains of usage after a second (usage.decay_per_second)."""

    cycle_s: int
    calc_s: int
    window_s: int
    decays: float


_MERGE: Final = False  # accounts that tie keep ranks apart, as slurmctld's code has it
MARENOSTRUM: Final = QueueSettings(60, 300, WEEK_S, decay_per_second(WEEK_S))
"""MareNostrum 4's, as Marciani et al. print them; what they leave out is slurm.conf's default."""


class Weights(NamedTuple):
    """Weights of the factors of a priority, and when age has its full weight, seconds."""

    fair_share: int = 100_000
    age: int = 100_000
    size: int = 10_000
    max_age_s: int = 10 * DAY_S


class Ordered(NamedTuple):
    """The order of n jobs: the tree, its usage [nodes] at the beginning, each job's user in it, and weighted parts.

    `after` [n] is the job that a job needs, -1 for none: it is submitted `notice_s` after the end of that one, not
    before its own submission, and no two jobs need the same. Only the starts of the `last` jobs of the trace are
    wanted, n for all.
    """

    tree: AccountTree
    usage: Floats
    node: Ints
    parts: Weighted
    after: Ints
    last: int
    notice_s: int


def ordered(
    jobs: Planned,
    total: int,
    owners: Sequence[tuple[str, str]],
    owner: Ints,
    usage: Floats,
    weights: Weights = Weights(),  # noqa: B008 a tuple of constants
    after: Ints | None = None,
    last: int | None = None,
    notice_s: int = 0,
) -> Ordered:
    """Build the order of n jobs; `owners` are (account, user), each with a share of 1 and its `usage`, CPU seconds.

    `owner` [n] is each job's place among them; accounts are below root, with a share of 1 each.
    """
    n = len(jobs.submit)
    accounts: dict[str, float] = {}
    for (account, _), used in zip(owners, usage.tolist(), strict=True):
        accounts[account] = accounts.get(account, 0.0) + used
    rows = [Association("root", parent="", usage=float(usage.sum()))]
    rows += [Association(name, usage=used) for name, used in accounts.items()]
    rows += [Association(*pair, usage=used) for pair, used in zip(owners, usage.tolist(), strict=True)]
    found = accounts_of(rows)
    places = np.array([found.node(*pair) for pair in owners], dtype=np.int64)
    zeros = np.zeros(n)
    size = weights.size * jobs.procs / total
    parts = Weighted(zeros, size, zeros, zeros, zeros, zeros, weights.age, weights.fair_share, weights.max_age_s)
    none = np.full(n, -1, dtype=np.int64)
    return Ordered(found.tree, found.usage, places[owner], parts, none if after is None else after, last or n, notice_s)


@compiled
def starts_by_priority(jobs: Planned, total: int, by: Ordered, settings: QueueSettings) -> tuple[Ints, Floats]:  # noqa: C901, PLR0912, PLR0915 one compiled loop, as easy.py
    """Return the start [n] of each job, -1 where only the last ones were wanted, and its priority [n] as it started."""
    submit, run, believed, limit, procs, _ = jobs
    n = len(submit)
    start, at_start = np.full(n, -1, np.int64), np.zeros(n)
    usage, factor, level = by.usage.copy(), np.zeros(len(by.usage)), np.zeros(len(by.usage))
    fair_tree(by.tree, usage, _MERGE, factor, level)
    room = n + 1
    end_times, end_jobs, running = np.empty(room, np.int64), np.empty(room, np.int64), 0
    held_times, held_jobs, held = np.empty(room, np.int64), np.empty(room, np.int64), 0
    eligible, queue, waiting = np.empty(n, np.int64), np.empty(n, np.int64), 0
    ended = np.zeros(n, np.bool_)
    follower = np.full(n, -1, np.int64)
    for job in range(n):
        if by.after[job] >= 0:
            follower[by.after[job]] = job
        else:
            held = push(held_times, held_jobs, held, submit[job], job)
    times, free = np.empty(4 * n + 8, np.int64), np.empty(4 * n + 8, np.int64)
    left, idle = by.last, total
    begin: int = held_times[0]
    calc, cycle = begin + settings.calc_s, begin
    changed = False
    while left > 0:
        now = calc if waiting > 0 else calc + settings.calc_s * n  # far off: handled only with another event
        if running > 0 and end_times[0] < now:
            now = end_times[0]
        if held > 0 and held_times[0] < now:
            now = held_times[0]
        if waiting > 0 and changed and cycle < now:
            now = cycle
        while calc <= now:
            decay(usage, settings.decays, float(settings.calc_s))
            for k in range(running):
                job = end_jobs[k]
                since = max(start[job], calc - settings.calc_s)
                charge(by.tree.parent, usage, by.node[job], float(procs[job]), settings.decays, since, calc)
            fair_tree(by.tree, usage, _MERGE, factor, level)
            calc += settings.calc_s
            changed = changed or waiting > 0
        some_ended = False
        while running > 0 and end_times[0] == now:
            job = end_jobs[0]
            running = pop(end_times, end_jobs, running)
            since = max(start[job], calc - settings.calc_s)
            charge(by.tree.parent, usage, by.node[job], float(procs[job]), settings.decays, since, now)
            idle += procs[job]
            some_ended = changed = ended[job] = True
            following = follower[job]
            if following >= 0:
                held = push(held_times, held_jobs, held, max(submit[following], now + by.notice_s), following)
        while held > 0 and held_times[0] <= now:
            job = held_jobs[0]
            eligible[job] = held_times[0]
            held = pop(held_times, held_jobs, held)
            queue[waiting] = job
            waiting += 1
            changed = True
        if cycle < now:
            cycle += -(-(now - cycle) // settings.cycle_s) * settings.cycle_s
        full = cycle == now
        if not (waiting > 0 and changed and (full or some_ended)):
            continue
        keys = np.empty(waiting, np.int64)
        for k in range(waiting):
            job = queue[k]
            keys[k] = -priority(by.parts, job, float(now - eligible[job]), factor[by.node[job]])
        order = np.argsort(keys, kind="mergesort")
        main = True
        first, last = 0, 1
        if full:
            ends = np.empty(running, np.int64)
            for k in range(running):
                job = end_jobs[k]
                ends[k] = start[job] + believed[job]
                if ends[k] <= now:
                    ends[k] = max(start[job] + limit[job], now + 1)
            times[0], free[0] = now, idle
            for k in np.argsort(ends):
                if ends[k] == times[last - 1]:
                    free[last - 1] += procs[end_jobs[k]]
                else:
                    times[last], free[last] = ends[k], free[last - 1] + procs[end_jobs[k]]
                    last += 1
        for place in order:
            job = queue[place]
            if main and procs[job] > idle:
                main = False
            if not main and not full:
                break
            if full:
                when = earliest(times, free, first, last, believed[job], procs[job], -1)
                if when > now + settings.window_s:
                    continue
                first, last = take(times, free, first, last, when, when + believed[job], procs[job])
                if when > now:
                    continue
            start[job], at_start[job] = now, float(-keys[place])
            idle -= procs[job]
            running = push(end_times, end_jobs, running, now + run[job], job)
            left -= job >= n - by.last
        kept = 0
        for k in range(waiting):
            if start[queue[k]] < 0:
                queue[kept] = queue[k]
                kept += 1
        waiting = kept
        if full:
            changed = False
            cycle += settings.cycle_s
    return start, at_start
