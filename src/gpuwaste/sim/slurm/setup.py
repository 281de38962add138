"""A board with all jobs still to come, from what jobs ask for and a cluster."""

from typing import Final

import numpy as np

from gpuwaste.jobs.history.table import Categories
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Board, Flags, Ints
from gpuwaste.sim.slurm.cluster_arrays import NodeLayout, preemption, scheduler_settings
from gpuwaste.sim.slurm.holds import holds_of
from gpuwaste.sim.slurm.placement import no_log
from gpuwaste.sim.slurm.requests import Requests
from gpuwaste.slurm.site.cluster_model import ClusterModel

_MOST_LEVELS: Final = 1024  # of free CPUs that are told apart: each job that starts changes all of them


def new_board(
    requests: Requests, users: Categories, accounts: Categories, model: ClusterModel, laid: NodeLayout
) -> Board:
    """Return a board; the rows of `requests` are copied, `users` and `accounts` name theirs.

    Raises ConfigError for settings that are none.
    """
    jobs = requests.jobs.copy()
    jobs[:, b.START] = jobs[:, b.HELD] = -1
    tiers = np.array([part.priority_tier for part in model.partitions])
    jobs[:, b.TIER] = tiers[jobs[:, b.PARTITION]]
    alike = [b.PARTITION, b.NODES, b.CPUS, b.MEMORY, b.GPUS, b.GPU_TYPE]
    if model.reservations:
        alike += [b.USER, b.ACCOUNT]
    jobs[:, b.LIKE] = np.unique(jobs[:, alike], axis=0, return_inverse=True)[1].reshape(-1)
    pairs = np.stack([jobs[:, b.PARTITION], requests.qos], axis=1)
    kinds, of_job = np.unique(pairs, axis=0, return_inverse=True)
    jobs[:, b.KIND] = of_job.reshape(-1)
    preempts, victims = preemption(model, kinds)
    types = len(laid.gpu_types)
    room = int(laid.full[:, b.FREE_CPUS].sum()) + 1  # a holding has a CPU at least
    holdings = np.zeros((room, b.HELD_TYPE + types), np.int64)
    holdings[:, b.NEXT_OF_JOB] = np.arange(1, room + 1)
    nodes = laid.full.copy()
    n = len(jobs)
    return Board(
        jobs=jobs,
        nodes=nodes,
        full=laid.full.copy(),
        holdings=holdings,
        idle=np.bincount(nodes[:, b.CLASS]),
        by_cpus=_at_least(nodes[:, b.FREE_CPUS], nodes[:, b.CLASS]),
        by_gpus=_at_least(nodes[:, b.FREE_GPUS], nodes[:, b.CLASS]),
        counters=np.zeros(b.COUNTERS, np.int64),
        in_partition=laid.in_partition.copy(),
        reserved=laid.reserved.copy(),
        reservations=laid.reservations.copy(),
        users=_named([each.users for each in model.reservations], users),
        accounts=_named([each.accounts for each in model.reservations], accounts),
        preempts=preempts,
        kinds=victims,
        gpu_seconds=np.zeros(types, np.int64),
        queue=np.empty(n, np.int64),
        returned=np.empty(n, np.int64),
        left=np.empty(n, np.int64),
        end_times=np.empty(2 * n + 2, np.int64),
        end_jobs=np.empty(2 * n + 2, np.int64),
        settings=scheduler_settings(model.settings),
        holds=holds_of(jobs, requests.qos, users, accounts, model),
        log=no_log(),
    )


def _at_least(amounts: Ints, classes: Ints) -> Ints:
    """Return of each class how many nodes have at least 0, 1, 2 .. of something."""
    levels = np.arange(min(int(amounts.max()), _MOST_LEVELS) + 1)
    found = np.zeros((classes.max() + 1, len(levels)), np.int64)
    np.add.at(found, classes, amounts[:, None] >= levels)
    return found


def _named(groups: list[frozenset[str]], texts: Categories) -> Flags:
    rows = [[name in names for name in texts.values] for names in groups]
    return np.array(rows, np.bool_).reshape(len(groups), len(texts.values))
