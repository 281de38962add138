"""The main loop: strict priority, a blocked job holds up its partition and the nodes of it: compiled."""

import numpy as np

from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import flow, holds
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.board import Board, Flags, Ints


@compiled
def try_now(board: Board, number: int, now: int, shut: Flags, allowed: Flags, chosen: Ints) -> bool:
    """Start a job where it fits outside the classes that are shut, or may preempt; returns whether it started."""
    on.open_classes(board, number, now, shut, allowed)
    if not on.choose(board, number, allowed, chosen):
        nowhere = np.zeros(len(board.nodes) if flow.can_preempt(board, number) else 0, np.bool_)
        if len(nowhere) == 0 or not flow.preempt(board, number, now, allowed, nowhere, chosen):
            return False
    for k in range(board.jobs[number, b.NODES]):
        on.hold(board, number, chosen[k])
    flow.begin(board, number, now)
    return True


@compiled
def main_pass(board: Board, now: int, depth: int, chosen: Ints) -> None:
    """Try the first `depth` jobs of the queue."""
    shut, allowed = on.no_classes(board), on.no_classes(board)
    failed = np.zeros(len(board.in_partition), np.bool_)
    left = len(failed)
    for k in range(min(depth, board.counters[b.QUEUED])):
        number = board.queue[k]
        partition = board.jobs[number, b.PARTITION]
        if failed[partition] or holds.is_held(board, number) or try_now(board, number, now, shut, allowed, chosen):
            continue
        failed[partition] = True
        left -= 1
        if left == 0:
            break
        for klass in range(len(shut)):
            shut[klass] = shut[klass] or board.in_partition[partition, klass]
    flow.tidy(board)
