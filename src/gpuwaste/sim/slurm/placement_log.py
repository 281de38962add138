"""The log of placements: what jobs held of some nodes in a window, kept as they leave the nodes.

A play without a log pays one comparison for each node that a job leaves. With one the play ends with the window, and
jobs that run then are added from what they hold.
"""

from typing import Final

import numpy as np

from gpuwaste.sim.compiled import in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Board, Flags, Ints, PlacementLog

MOST_ROWS: Final = 50_000


def no_log() -> PlacementLog:
    """Return the log of a play that is played to its end and keeps no placements."""
    return PlacementLog(
        np.empty((0, b.LOG_COLUMNS), np.int64), np.zeros(0, np.bool_), np.array([0, b.FOREVER], np.int64)
    )


def new_log(nodes: Flags, first: int, last: int) -> PlacementLog:
    """Return an empty log of these nodes [m] from `first` until `last`, UTC seconds."""
    return PlacementLog(
        np.empty((MOST_ROWS, b.LOG_COLUMNS), np.int64), nodes, np.array([first, max(last, first + 1)], np.int64)
    )


@in_place
def record(board: Board, start: int, end: int, held: Ints) -> None:
    """Keep what a job held of a node, where the node is logged and any of it lies in the window."""
    log, node = board.log, held[b.OF_NODE]
    if not log.nodes[node] or start >= log.window[1] or end <= log.window[0]:
        return
    size = board.counters[b.LOGGED]
    if size == len(log.rows):
        board.counters[b.NOT_LOGGED] += 1
        return
    row = log.rows[size]
    row[b.LOG_NODE], row[b.LOG_JOB], row[b.LOG_FROM], row[b.LOG_UNTIL] = node, held[b.OF_JOB], start, end
    row[b.LOG_CPUS], row[b.LOG_GPUS] = held[b.HELD_CPUS], 0
    for t in range(len(board.gpu_seconds)):
        row[b.LOG_GPUS] += held[b.HELD_TYPE + t]
    board.counters[b.LOGGED] = size + 1


def logged(board: Board) -> Ints:
    """Return the rows of a play that has ended with its window, those of running jobs included, by node and start."""
    for node in np.flatnonzero(board.log.nodes):
        place = board.nodes[node, b.HOLDING]
        while place >= 0:
            held = board.holdings[place]
            job = board.jobs[held[b.OF_JOB]]
            record(board, job[b.START], job[b.START] + job[b.RUN], held)
            place = held[b.NEXT_OF_NODE]
    found = board.log.rows[: board.counters[b.LOGGED]]
    return found[np.lexsort((found[:, b.LOG_JOB], found[:, b.LOG_FROM], found[:, b.LOG_NODE]))]
