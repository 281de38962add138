"""The board that the compiled loops play on: jobs, nodes and what jobs hold of nodes, as rows of integers.

Rows instead of an array for each column: a compiled function takes few arguments, and one job is in one line of the
cache. Columns have the names below; those of GPU types follow the last one, T of them.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.assoc_limits import LimitTable, LimitUse

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Jobs [n, JOB_COLUMNS], by submission. NODES to GPU_TYPE are requested: the amounts of each node, GPU_TYPE -1 is any.
SUBMIT: Final = 0
RUN: Final = 1
BELIEVED: Final = 2
LIMIT: Final = 3
PARTITION: Final = 4
NODES: Final = 5
CPUS: Final = 6
MEMORY: Final = 7
GPUS: Final = 8
GPU_TYPE: Final = 9
WHOLE: Final = 10
USER: Final = 11
ACCOUNT: Final = 12
KIND: Final = 13  # jobs of one kind (partition, QOS) preempt and are preempted alike
LIKE: Final = 14  # number of the jobs that request the same of the same partition
TIER: Final = 15
PRIORITY: Final = 16
START: Final = 17  # the last one, where a job was requeued
STATE: Final = 18
HELD: Final = 19  # first holding, -1 for none
RAN: Final = 20  # seconds of its last run
REQUEUED: Final = 21
HELD_BY: Final = 22  # code of the limit that held it last (limits.reason), 0 for none
JOB_COLUMNS: Final = 23

FUTURE: Final = 0
WAITING: Final = 1
RUNNING: Final = 2
ENDED: Final = 3
COMPLETING: Final = 4  # its run is over, and nodes hold what it had until their epilogs have ended

# Nodes [m, FIRST_TYPE + T], in the order in which they are taken: what is free. `full` has what an idle node has.
CLASS: Final = 0  # nodes of one class are equal, and are in the same partitions and reservations
FREE_CPUS: Final = 1
FREE_MEMORY: Final = 2
FREE_GPUS: Final = 3
JOBS: Final = 4
HOLDING: Final = 5  # first holding, -1 for none
DOWN: Final = 6
WEIGHT: Final = 7
PLACE: Final = 8  # in the cluster: which nodes follow one another
FIRST_TYPE: Final = 9

# Holdings [h, HELD_TYPE + T]: what one job holds of one node.
OF_JOB: Final = 0
OF_NODE: Final = 1
NEXT_OF_JOB: Final = 2
NEXT_OF_NODE: Final = 3
HELD_CPUS: Final = 4
HELD_MEMORY: Final = 5
HELD_TYPE: Final = 6

# The log of placements [r, LOG_COLUMNS]: what one run of a job held of one node, from when until when.
LOG_NODE: Final = 0
LOG_JOB: Final = 1
LOG_FROM: Final = 2
LOG_UNTIL: Final = 3
LOG_CPUS: Final = 4
LOG_GPUS: Final = 5
LOG_COLUMNS: Final = 6

# Counters [COUNTERS].
FREE_HOLDING: Final = 0
QUEUED: Final = 1  # jobs in the queue
ENDS: Final = 2  # size of the heap of ends
RETURNED: Final = 3  # jobs that are requeued once the pass is over
CHANGES: Final = 4  # submissions, starts and ends so far
FREED: Final = 5  # jobs that were preempted or lost their node so far
LEFT: Final = 6  # jobs that left their nodes, and are not charged yet
LOGGED: Final = 7  # rows of the log of placements
NOT_LOGGED: Final = 8  # for lack of room
COUNTERS: Final = 9

# Settings [SETTINGS], of slurm.conf; seconds.
INTERVAL: Final = 0
WINDOW: Final = 1
RESOLUTION: Final = 2
MAX_TESTS: Final = 3
MAX_OF_USER: Final = 4  # 0 for no limit
MAX_STARTS: Final = 5  # 0 for no limit
DEPTH: Final = 6
FULL_INTERVAL: Final = 7
DELAY: Final = 8
DEFER: Final = 9
BACKFILLS: Final = 10
REQUEUES: Final = 11  # whether a job that loses a node is requeued
END_WINDOW: Final = 12  # within which ends of running jobs are considered together, at first
SETTINGS: Final = 13

# Kinds of passes whose instants are given [p, 2].
MAIN: Final = 0  # the first DEPTH jobs of the queue
FULL: Final = 1
CYCLE: Final = 2  # of backfill

FOREVER: Final = 1 << 60


class Holds(NamedTuple):
    """Limits of n jobs with T TRES; without limits there are no rows."""

    table: LimitTable
    use: LimitUse
    qos: Ints  # [n, 2], the stronger one first (limits.qos_order)
    assoc: Ints  # [n]
    amounts: NDArray[np.float64]  # [n, T]
    factor: NDArray[np.float64]  # [n], UsageFactor


class PlacementLog(NamedTuple):
    """What jobs held of some nodes in a window (placement.py); without `rows` nothing is kept."""

    rows: Ints  # [r, LOG_COLUMNS]
    nodes: Flags  # [m]: those that are logged
    window: Ints  # [2]: from, until; the play ends there


class Board(NamedTuple):
    """P partitions, K classes, R reservations, G kinds of jobs; see the columns above."""

    jobs: Ints
    nodes: Ints
    full: Ints
    holdings: Ints
    idle: Ints  # [K]: nodes that are up and without jobs
    by_cpus: Ints  # [K, C]: nodes that are up, with at least so many free CPUs; the last column is for all larger ones
    by_gpus: Ints  # [K, D]: the same for GPUs of any type
    counters: Ints
    in_partition: Flags  # [P, K]
    reserved: Flags  # [R, K]
    reservations: Ints  # [R, 2], start and end
    users: Flags  # [R, users]: who may use it
    accounts: Flags  # [R, accounts]
    preempts: Flags  # [G, G]: whether the first kind may preempt the second
    kinds: Ints  # [G, 3]: rank of a victim (lowest first), whether it is requeued, how many of the kind run
    gpu_seconds: Ints  # [T], held
    queue: Ints  # [n], by tier, priority, submission
    returned: Ints  # [n]
    left: Ints  # [n]
    end_times: Ints  # [2 n + 2], a heap (sim/ends.py); outdated ends are skipped
    end_jobs: Ints
    settings: Ints
    holds: Holds
    log: PlacementLog
