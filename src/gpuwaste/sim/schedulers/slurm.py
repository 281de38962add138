"""Slurm: the main loop by strict priority, and backfill, on nodes with CPUs, memory and GPUs by type.

What it models and what it leaves out: docs/explanation/slurm-model.md.
"""

from typing import Final

import numpy as np

from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.document import NodesResult
from gpuwaste.sim.schedule_metrics import Placed, Placements
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Board, PlacementLog
from gpuwaste.sim.slurm.board_setup import new_board, requests_of
from gpuwaste.sim.slurm.cluster_arrays import NodeLayout, layout
from gpuwaste.sim.slurm.holds import held_jobs
from gpuwaste.sim.slurm.placement import logged, new_log, no_log
from gpuwaste.sim.slurm.ranks import ranks_of
from gpuwaste.sim.slurm.slurm_loop import play
from gpuwaste.sim.trace import Ints, Trace
from gpuwaste.slurm.site.cluster_model import ClusterModel

TITLE: Final = "Slurm: main loop and backfill, jobs placed on nodes"
NEEDS_CLUSTER: Final = True
MOST_LANES: Final = 360  # of GPUs, or of nodes without any, whose placements are kept


def playable(table: JobTable, trace: Trace, cluster: ClusterModel) -> tuple[Trace, dict[str, int]]:
    """Return the jobs that can run on a cluster, and how many were left out and why. Raises NoDataError."""
    kept, _, counts = requests_of(table, trace, cluster, layout(cluster))
    return kept, counts


def starts_on(table: JobTable, trace: Trace, cluster: ClusterModel, believed: Ints | None) -> Placed:
    """Play a trace of jobs that are all playable, by these walltimes [n], or users' last two jobs for None.

    Raises ConfigError for invalid settings of the cluster, NoDataError for jobs that cannot run on it.
    """
    laid = layout(cluster)
    board = _played(table, trace, cluster, believed, laid, no_log())
    jobs = board.jobs
    capacity = laid.full[:, b.FIRST_TYPE :].sum(axis=0)
    begun = jobs[:, b.START] >= 0
    ends = jobs[begun, b.START] + jobs[begun, b.RAN]
    span = int(ends.max() - trace.submit.min()) if len(ends) else 0
    return Placed(
        start=jobs[:, b.START].copy(),
        run_s=np.where(jobs[:, b.RAN] >= jobs[:, b.RUN], trace.run_s, jobs[:, b.RAN]),
        result=NodesResult(
            never_started=int(np.count_nonzero(~begun)),
            requeued=int(jobs[:, b.REQUEUED].sum()),
            cut_short=int(np.count_nonzero(begun & (jobs[:, b.RAN] < jobs[:, b.RUN]))),
            gpu_utilization={
                name or "gpu": round(float(held / (count * span)), 6)
                for name, held, count in zip(laid.gpu_types, board.gpu_seconds, capacity, strict=True)
                if span and count
            },
            held=held_jobs(board, cluster),
        ),
    )


def placements(
    table: JobTable, trace: Trace, cluster: ClusterModel, believed: Ints | None, window: tuple[int, int]
) -> Placements:
    """Play as starts_on() until the window's end and return what jobs held in it: nodes with GPUs first, MOST_LANES.

    Raises as starts_on().
    """
    laid = layout(cluster)
    chosen = _looked_at(laid)
    wanted = np.zeros(len(laid.names), np.bool_)
    wanted[chosen] = True
    board = _played(table, trace, cluster, believed, laid, new_log(wanted, *window))
    rows = logged(board)
    places = np.zeros(len(wanted), np.int64)
    places[chosen] = np.arange(len(chosen))
    named = {node.name: node for node in cluster.nodes}
    return Placements(
        nodes=tuple(named[laid.names[node]] for node in chosen.tolist()),
        node=places[rows[:, b.LOG_NODE]],
        job=rows[:, b.LOG_JOB].copy(),
        start=rows[:, b.LOG_FROM].copy(),
        end=rows[:, b.LOG_UNTIL].copy(),
        cpus=rows[:, b.LOG_CPUS].copy(),
        gpus=rows[:, b.LOG_GPUS].copy(),
        nodes_left=len(wanted) - len(chosen),
        rows_left=int(board.counters[b.NOT_LOGGED]),
    )


def _played(
    table: JobTable, trace: Trace, cluster: ClusterModel, believed: Ints | None, laid: NodeLayout, log: PlacementLog
) -> Board:
    kept, requests, _ = requests_of(table, trace, cluster, laid)
    if len(kept) != len(trace):
        raise ValueError("jobs that cannot run on the cluster: see playable()")
    if believed is not None:
        requests.jobs[:, b.BELIEVED] = believed
    board = new_board(requests, table.user, table.account, cluster, laid)._replace(log=log)
    ranks = ranks_of(board.jobs, requests.qos, table.user, table.account, cluster)
    play(board, ranks, laid.events, np.empty((0, 2), np.int64), believed is None)
    return board


def _looked_at(laid: NodeLayout) -> Ints:
    """Return the nodes that are drawn, only those with GPUs where there are any, at most MOST_LANES lanes."""
    gpus = laid.full[:, b.FREE_GPUS]
    order = np.flatnonzero(gpus > 0) if gpus.any() else np.arange(len(gpus))
    return order[: max(1, int(np.searchsorted(np.cumsum(np.maximum(gpus[order], 1)), MOST_LANES, side="right")))]
