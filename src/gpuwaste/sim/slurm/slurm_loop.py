"""The loop over instants, compiled: ends, failures of nodes, submissions, the main loop, backfill, in this order.

An instant is visited only if something happens in it: a pass of the main loop or a cycle of backfill that finds the
board unchanged would start nothing, and is left out.
"""

import numpy as np

from gpuwaste.sim.believed_times import believed_of, ended, no_runs
from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.slurm import backfill, flow
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import node_groups as g
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm import ranks as by
from gpuwaste.sim.slurm.board import Board, Ints
from gpuwaste.sim.slurm.ranks import Ranks


@compiled
def _grid(now: int, origin: int, step: int) -> int:
    """Return the last multiple of a step, from `origin` on, that is not after now."""
    return origin + (now - origin) // step * step


@compiled
def _next_pass(board: Board, after: int, origin: int, last_pass: int, asked: bool, changed: bool) -> int:
    """Return the first instant from `after` on at which the main loop runs and may find anything."""
    step, found = board.settings[b.FULL_INTERVAL], b.FOREVER
    if changed:
        found = _grid(after - 1, origin, step) + step
    if asked:
        delay = board.settings[b.DELAY]
        quick = max(after, last_pass + delay)
        found = min(found, max(quick, _grid(quick, origin, step) + delay))
    return found


@compiled
def _node_event(board: Board, node: int, change: int, now: int) -> None:
    """Let a node fail (1), with the jobs on it, or return (-1)."""
    board.counters[b.CHANGES] += 1
    if change > 0:
        requeues = board.settings[b.REQUEUES] == 1
        while board.nodes[node, b.HOLDING] >= 0:
            flow.send_away(board, board.holdings[board.nodes[node, b.HOLDING], b.OF_JOB], now, requeues)
    on.count_class(board, node, -1)
    board.nodes[node, b.DOWN] += change
    on.count_class(board, node, 1)
    flow.tidy(board)


@compiled
def play(  # noqa: C901, PLR0912, PLR0915 one compiled loop, as schedulers/easy.py
    board: Board, ranks: Ranks, node_events: Ints, passes: Ints, learns: bool
) -> None:
    """Play all jobs; their rows have starts then, -1 for those that never start.

    `node_events` [e, 3] are instants, nodes and changes, by time; a reservation's bounds have node -1. `passes` [p, 2]
    are the instants, by time, at which the main loop (MAIN, FULL) and backfill (CYCLE) run; without any they run by the
    settings. `learns`: walltimes are believed to be the mean of the user's last two jobs (believed_times.py). A log
    of placements ends the play with its window.
    """
    jobs, settings, counters = board.jobs, board.settings, board.counters
    n, origin = len(jobs), jobs[0, b.SUBMIT]
    runs = no_runs(jobs[:, b.USER] if learns else jobs[:0, b.USER])
    held, notes = g.new_groups(board), backfill.new_notes(board, np.empty(0, np.int64))
    spans, events = np.empty((4 * len(board.nodes) + 1024, 4), np.int64), np.empty(len(board.nodes), np.int64)
    chosen = np.empty(len(board.nodes), np.int64)
    arrived = happened = freed = turn = 0
    last_pass, last_cycle, asked = origin - settings[b.DELAY], origin - settings[b.INTERVAL], False
    seen_by_pass = seen_by_cycle = counters[b.CHANGES]
    if ranks.period > 0:
        by.set_fair_share(ranks)
    now = origin - 1
    while True:
        following = flow.next_end(board)
        if arrived < n:
            following = min(following, jobs[arrived, b.SUBMIT])
        if happened < len(node_events):
            following = min(following, node_events[happened, 0])
        if turn < len(passes):
            following = min(following, passes[turn, 0])
        elif len(passes) == 0:
            changed = counters[b.CHANGES] != seen_by_pass
            following = min(following, _next_pass(board, now + 1, origin, last_pass, asked, changed))
            if settings[b.BACKFILLS] == 1 and counters[b.CHANGES] != seen_by_cycle:
                following = min(following, max(now + 1, last_cycle + settings[b.INTERVAL]))
        if following >= board.log.window[1]:
            break
        if ranks.period > 0 and counters[b.ENDS] + counters[b.QUEUED] > 0:
            following = min(following, _grid(now, origin, ranks.period) + ranks.period)
        now, at_once = following, False
        while flow.next_end(board) == now:
            number = flow.end_next(board)
            at_once = settings[b.DEFER] == 0
            asked = asked or not at_once
            if learns:
                ended(runs, jobs[number, b.USER], jobs[number, b.RUN])
        while happened < len(node_events) and node_events[happened, 0] <= now:
            if node_events[happened, 1] >= 0:
                _node_event(board, node_events[happened, 1], node_events[happened, 2], now)
            counters[b.CHANGES] += 1
            happened += 1
            asked = True
        by.charge_ends(board, ranks)
        if ranks.period > 0 and (now - origin) % ranks.period == 0:
            by.recompute(board, ranks, now)
        while arrived < n and jobs[arrived, b.SUBMIT] == now:
            if learns:
                jobs[arrived, b.BELIEVED] = believed_of(runs, jobs[arrived, b.USER], jobs[arrived, b.LIMIT])
            by.set_priority(board, ranks, arrived, now)
            flow.enqueue(board, arrived)
            arrived += 1
            asked = True
        last_pass = max(last_pass, _grid(now - 1, origin, settings[b.FULL_INTERVAL]))
        asked = asked or counters[b.FREED] != freed
        freed = counters[b.FREED]
        by.charge_ends(board, ranks)
        while turn < len(passes) and passes[turn, 0] <= now:
            if passes[turn, 1] == b.CYCLE:
                spans = backfill.cycle(board, held, spans, events, notes, now, chosen)
            else:
                flow.main_pass(board, now, n if passes[turn, 1] == b.FULL else settings[b.DEPTH], chosen)
            by.charge_ends(board, ranks)
            turn += 1
        if len(passes) > 0:
            continue
        full = (now - origin) % settings[b.FULL_INTERVAL] == 0
        due = full or (asked and now >= last_pass + settings[b.DELAY])
        if due or at_once:
            seen = counters[b.CHANGES]
            if due:
                last_pass, asked = now, False
            if full:
                seen_by_pass = seen
            flow.main_pass(board, now, n if full else settings[b.DEPTH], chosen)
            by.charge_ends(board, ranks)
        if (
            settings[b.BACKFILLS] == 1
            and counters[b.CHANGES] != seen_by_cycle
            and now >= last_cycle + settings[b.INTERVAL]
        ):
            last_cycle, seen_by_cycle = now, counters[b.CHANGES]
            spans = backfill.cycle(board, held, spans, events, notes, now, chosen)
            by.charge_ends(board, ranks)
        asked = asked or counters[b.FREED] != freed
        freed = counters[b.FREED]
