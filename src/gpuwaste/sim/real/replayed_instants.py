"""The Slurm model at the instants of a real run: slurmctld's passes, its submissions, and how long jobs held nodes.

What is given is timing: when passes began and when they reached each job, when jobs were submitted, and how long each
job held its nodes. Which jobs start at which pass, and on which nodes, is the model's own.

Passes use whole seconds, as slurmctld's time(NULL) does. What happens between two passes uses milliseconds: a job
that frees its nodes just before a pass is seen by it, one just after it is not.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.ends import pop, push
from gpuwaste.sim.real.instants import BACKFILL, ENDED, FREED, FULL, MAIN, STARTED, SUBMITTED, TESTED, ControllerInstant
from gpuwaste.sim.real.real_jobs import submissions
from gpuwaste.sim.slurm import backfill, flow
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import node_groups as g
from gpuwaste.sim.slurm import ranks as by
from gpuwaste.sim.slurm.board import Board, Ints
from gpuwaste.sim.slurm.board_setup import new_board, requests_of
from gpuwaste.sim.slurm.cluster_arrays import layout
from gpuwaste.sim.slurm.ranks import Ranks, ranks_of
from gpuwaste.slurm.site.cluster_model import ClusterModel

SUBMITTED_KIND: Final = 3  # in addition to MAIN, FULL and CYCLE of board.py
TESTED_KIND: Final = 4  # a cycle of backfill reached a job
STARTED_KIND: Final = 5
MS: Final = 1000
_KINDS: Final = {
    MAIN: b.MAIN,
    FULL: b.FULL,
    BACKFILL: b.CYCLE,
    SUBMITTED: SUBMITTED_KIND,
    TESTED: TESTED_KIND,
    STARTED: STARTED_KIND,
}


@in_place
def _read_clock(instants: Ints, turn: int, board: Board, clock: Ints, started: Ints) -> None:
    """Fill when a pass reached each waiting job, and when it started one, -1 for the others, in seconds.

    A pass reached a job without such an instant at the same second as the one before it in the queue. A cycle releases
    its locks now and then: passes of the main loop run in its middle, and what follows them until it tests again
    is theirs.
    """
    queued = board.counters[b.QUEUED]
    for k in range(queued):
        clock[board.queue[k]] = started[board.queue[k]] = -1
    cycle, own, following = instants[turn, 1] == b.CYCLE, True, turn + 1
    while following < len(instants):
        second, kind, number = instants[following, 0] // MS, instants[following, 1], instants[following, 2]
        if kind < SUBMITTED_KIND:
            if kind == b.CYCLE or not cycle:
                break
            own = False
        elif kind == TESTED_KIND:
            own = cycle
            if own:
                clock[number] = second
        elif kind == STARTED_KIND and own:
            started[number] = second
        following += 1
    last = instants[turn, 0] // MS
    for k in range(queued):
        number = board.queue[k]
        last = max(last, clock[number])
        clock[number] = last


@compiled
def play_given(board: Board, ranks: Ranks, instants: Ints, held_ms: Ints) -> None:  # noqa: C901 one compiled loop, as schedulers/easy.py
    """Play all jobs; their rows have starts then, in seconds, -1 for those that never start.

    `instants` [i, 3] are milliseconds, a kind (of board.py and above) and a job's row, by time; those of jobs that a
    pass tested or started only give how far its clock had gone. `held_ms` [n, 2] is how long each job runs and
    how long it holds its nodes, both from the pass that starts it; in between it completes. Nodes do not fail,
    and no job is preempted.
    """
    jobs, settings, n = board.jobs, board.settings, len(board.jobs)
    clock, started = np.empty(n, np.int64), np.empty(n, np.int64)
    notes, held = backfill.new_notes(board, clock), g.new_groups(board)
    spans, events = np.empty((4 * len(board.nodes) + 1024, 4), np.int64), np.empty(len(board.nodes), np.int64)
    chosen = np.empty(len(board.nodes), np.int64)
    end_ms, end_jobs, running = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), 0
    ran_ms, ran_jobs, ending = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), 0
    computed = instants[0, 0] // MS if len(instants) else 0
    if ranks.period > 0:
        by.set_fair_share(ranks)
    for turn in range(len(instants)):
        at, kind = instants[turn, 0], instants[turn, 1]
        now = at // MS
        if kind > SUBMITTED_KIND:
            continue
        while ending > 0 and ran_ms[0] <= at:
            number = ran_jobs[0]
            ending = pop(ran_ms, ran_jobs, ending)
            flow.complete(board, number)
        while running > 0 and end_ms[0] <= at:
            number = end_jobs[0]
            running = pop(end_ms, end_jobs, running)
            flow.end(board, number)
        by.charge_ends(board, ranks)
        if ranks.period > 0 and now >= computed + ranks.period:
            computed += (now - computed) // ranks.period * ranks.period
            by.recompute(board, ranks, computed)
        if kind == SUBMITTED_KIND:
            number = instants[turn, 2]
            if jobs[number, b.STATE] == b.FUTURE:
                by.set_priority(board, ranks, number, now)
                flow.enqueue(board, number)
            continue
        waiting = board.queue[: board.counters[b.QUEUED]].copy()
        _read_clock(instants, turn, board, clock, started)
        if kind == b.CYCLE:
            spans = backfill.cycle(board, held, spans, events, notes, now, chosen)
        else:
            flow.main_pass(board, now, n if kind == b.FULL else settings[b.DEPTH], chosen)
        for number in waiting:
            if jobs[number, b.STATE] == b.RUNNING:
                jobs[number, b.START] = max(clock[number], started[number])
                ending = push(ran_ms, ran_jobs, ending, at + held_ms[number, 0], number)
                running = push(end_ms, end_jobs, running, at + held_ms[number, 1], number)


def starts_at(instants: Sequence[ControllerInstant], table: JobTable, model: ClusterModel) -> list[int | None]:
    """Return the start of each job of a run, UTC seconds of the trace, by the place in the run's CSV.

    None for a job that does not start in the model. One that did not start in the run does not end in the model.
    Raises UsageError for a cluster whose jobs are requeued, and for instants of other jobs.
    """
    if model.outages or model.settings.get("PreemptType", "preempt/none") not in {"", "preempt/none"}:
        raise UsageError(f"{model.name}: jobs can be requeued: only runs without requeued jobs can be replayed")
    laid = layout(model)
    submitted, _, _ = submissions(table, model)
    kept, requests, _ = requests_of(table, submitted, model, laid)
    places = np.full(len(submitted), -1)  # of what the run submitted, in the model
    places[np.isin(submitted.row, kept.row)] = np.arange(len(kept))
    known = _of_model(instants, places.tolist())
    held_ms = _held_ms(known, len(kept))
    jobs = requests.jobs.copy()
    jobs[:, b.BELIEVED] = jobs[:, b.LIMIT]
    jobs[:, b.RUN] = np.maximum(1, held_ms[:, 1] // MS)
    board = new_board(requests._replace(jobs=jobs), table.user, table.account, model, laid)
    ranks = ranks_of(board.jobs, requests.qos, table.user, table.account, model)
    given = [(each.ms, _KINDS[each.kind], each.row or 0) for each in known if each.kind in _KINDS]
    play_given(board, ranks, np.array(given, np.int64).reshape(-1, 3), held_ms)
    starts = [start if start >= 0 else None for start in board.jobs[:, b.START].tolist()]
    return [starts[place] if place >= 0 else None for place in places.tolist()]


def _of_model(instants: Sequence[ControllerInstant], places: Sequence[int]) -> list[ControllerInstant]:
    """Return passes, and the outcome of the jobs that the model plays, by their places in it."""
    found = []
    for each in instants:
        if each.row is None:
            found.append(each)
        elif each.row >= len(places):
            raise UsageError(f"row {each.row}: the run has more jobs than the trace: give the trace of the run")
        elif places[each.row] >= 0:
            found.append(ControllerInstant(each.ms, each.kind, places[each.row]))
    return found


def _held_ms(instants: Sequence[ControllerInstant], count: int) -> Ints:
    """Return how long each job ran and held its nodes [n, 2], counted from the pass that started it.

    The two are equal where the run's instants do not have its end.
    """
    found, began, last_pass = np.full((count, 2), b.FOREVER >> 1, np.int64), {}, 0
    for each in instants:
        if each.row is None:
            last_pass = each.ms
        elif each.kind == STARTED:
            began[each.row] = last_pass or each.ms
        elif each.kind == ENDED and each.row in began:
            found[each.row, 0] = each.ms - began[each.row]
        elif each.kind == FREED and each.row in began:
            found[each.row, 1] = each.ms - began[each.row]
    found[:, 0] = np.minimum(found[:, 0], found[:, 1])
    return found
