"""A board before the first submission: what each job requests of each node of its partition, and which can never run.

A log has total amounts; the model gives a job as many equal nodes as it requested, and each the same part of the
amounts, rounded up. A job that did not request nodes gets the fewest of its partition that have what it requested.
"""

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.job_table import Categories, JobTable
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Board, Flags, Ints
from gpuwaste.sim.slurm.cluster_arrays import NodeLayout, lowered, preemption, scheduler_settings
from gpuwaste.sim.slurm.holds import holds_of
from gpuwaste.sim.slurm.placement import no_log
from gpuwaste.sim.trace import Trace
from gpuwaste.slurm.site.cluster_model import ClusterModel, Partition

Floats = NDArray[np.float64]
_UNKNOWN: Final = -1
_MIB: Final = 1 << 20
_MOST_LEVELS: Final = 1024  # of free CPUs that are distinguished: each job that starts changes all of them


class Requests(NamedTuple):
    """n jobs, by submission: `jobs` [n, JOB_COLUMNS] filled up to WHOLE; `qos` places in the model, -1 unknown."""

    jobs: Ints
    qos: Ints


def requests_of(
    table: JobTable, trace: Trace, model: ClusterModel, laid: NodeLayout
) -> tuple[Trace, Requests, dict[str, int]]:
    """Return the jobs of a trace that can run on a cluster, what they request, and how many were left out and why.

    Where no job names a partition of the cluster, all are in its default one. Raises NoDataError where none is left.
    """
    partition = _partitions(table, trace, model)
    known = np.maximum(partition, 0)
    rows = np.zeros((len(trace), b.JOB_COLUMNS), np.int64)
    rows[:, b.SUBMIT], rows[:, b.RUN] = trace.submit, np.maximum(trace.run_s, 1)
    rows[:, b.BELIEVED] = rows[:, b.LIMIT] = trace.limit_s
    rows[:, b.PARTITION], rows[:, b.USER] = partition, trace.user
    rows[:, b.ACCOUNT] = table.account.codes[trace.row]
    rows[:, b.GPU_TYPE] = _gpu_types(table, trace, laid)
    asked = _amounts(table, trace, model)
    most = _most(laid, partition, rows[:, b.GPU_TYPE])
    nodes = table.nodes[trace.row]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.ceil(np.nan_to_num(asked / most, nan=0.0, posinf=1.0)).max(axis=1)
    nodes = np.maximum(np.where(np.isnan(nodes), least, nodes), 1.0)
    rows[:, b.NODES] = np.minimum(nodes, 1 << 40)
    each = np.ceil(asked / nodes[:, None])
    rows[:, b.CPUS], rows[:, b.MEMORY], rows[:, b.GPUS] = np.maximum(each[:, 0], 1), each[:, 1], each[:, 2]
    whole = np.array([part.whole_nodes for part in model.partitions]) | _by_nodes(model)
    rows[:, b.WHOLE] = whole[known]
    qos = _places(table.qos, [each.name for each in model.qos], trace.row)
    reasons = _reasons(table, trace, model, laid, Requests(rows, qos))
    left = np.ones(len(trace), np.bool_)
    counts: dict[str, int] = {}
    for reason, places in reasons.items():
        counts[reason] = int(np.count_nonzero(left & places))
        left &= ~places
    kept = np.flatnonzero(left)
    counts = {reason: count for reason, count in counts.items() if count}
    if not len(kept):
        told = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        raise NoDataError(f"no job of the trace can run on cluster {model.name}: of {len(trace)}, {told}")
    return trace.take(kept), Requests(rows[kept], qos[kept]), counts


def _partitions(table: JobTable, trace: Trace, model: ClusterModel) -> Ints:
    """Return each job's partition by its place in the model, -1 for one that the cluster lacks."""
    names = [part.name for part in model.partitions]
    found = _places(table.partition, names, trace.row)
    default = names.index(model.default_partition().name)
    unnamed = np.array([not value for value in table.partition.values] or [True])[table.partition.codes[trace.row]]
    found[unnamed] = default
    if not np.any((found >= 0) & ~unnamed):
        found[:] = default
    return found


def _places(texts: Categories, names: list[str], rows: Ints) -> Ints:
    """Return the place of each row's text among names; of several partitions with a comma, that of the first known."""
    places = {name: k for k, name in enumerate(names)}
    by_code = [next((places[word] for word in value.split(",") if word in places), _UNKNOWN) for value in texts.values]
    return np.array(by_code or [_UNKNOWN], np.int64)[texts.codes[rows]]


def _gpu_types(table: JobTable, trace: Trace, laid: NodeLayout) -> Ints:
    """Return the place of each job's GPU type, -1 for any, -2 for one that no node has."""
    types = {name.lower(): k for k, name in enumerate(laid.gpu_types) if name}
    by_code = [-1 if not value else types.get(value.lower(), -2) for value in table.gpu_type.values]
    return np.array(by_code or [-1], np.int64)[table.gpu_type.codes[trace.row]]


def _by_nodes(model: ClusterModel) -> bool:
    return lowered(model.settings).get("selecttype", "") == "select/linear"


def _amounts(table: JobTable, trace: Trace, model: ClusterModel) -> Floats:
    """Return total CPUs, memory and GPUs [n, 3]; memory where Slurm counts it, DefMem where a job names none."""
    rows, settings = trace.row, lowered(model.settings)
    cpus = np.where(np.nan_to_num(table.cpus[rows]) >= 1, table.cpus[rows], trace.procs)
    memory = np.nan_to_num(table.mem_b[rows])
    by_cpu, by_node = (settings.get(name, "") for name in ("defmempercpu", "defmempernode"))
    if by_cpu.isdigit():
        memory = np.where(memory > 0, memory, cpus * float(by_cpu[:9]) * _MIB)
    elif by_node.isdigit():
        asked = np.nan_to_num(table.nodes[rows], nan=1.0)
        memory = np.where(memory > 0, memory, asked * float(by_node[:9]) * _MIB)
    parameters = settings.get("selecttypeparameters", "")
    if parameters and "memory" not in parameters.lower():
        memory = np.zeros(len(rows))
    gpus = np.where(table.gpus[rows] >= 0, table.gpus[rows], 0.0)
    found: Floats = np.clip(np.stack([cpus, memory, gpus], axis=1), 0.0, 2.0**52)
    return found


def _most(laid: NodeLayout, partition: Ints, gpu_type: Ints) -> Floats:
    """Return the CPUs, memory and GPUs (of the type) [n, 3] of the largest node of each job's partition."""
    columns = [b.FREE_CPUS, b.FREE_MEMORY, b.FREE_GPUS, *range(b.FIRST_TYPE, laid.full.shape[1])]
    amounts = laid.full[:, columns].astype(np.float64)
    of_part = np.array([amounts[nodes].max(axis=0) if nodes.any() else amounts[0] * 0 for nodes in laid.nodes_of])
    found = of_part[np.maximum(partition, 0)]
    gpus = np.take_along_axis(found, np.where(gpu_type >= 0, 3 + gpu_type, 2)[:, None], axis=1)
    return np.concatenate([found[:, :2], gpus], axis=1)


def _reasons(table: JobTable, trace: Trace, model: ClusterModel, laid: NodeLayout, asked: Requests) -> dict[str, Flags]:
    """Return which jobs can never run, by the reason; the first one counts."""
    rows, parts = asked.jobs, model.partitions
    partition, nodes = np.maximum(rows[:, b.PARTITION], 0), rows[:, b.NODES]

    def of_part(values: list[float]) -> Floats:
        return np.array(values, np.float64)[partition]

    max_nodes = of_part([math.inf if part.max_nodes is None else part.max_nodes for part in parts])
    max_time = of_part([math.inf if part.max_time_s is None else part.max_time_s for part in parts])
    return {
        "names a partition that the cluster does not have": rows[:, b.PARTITION] < 0,
        "names a partition that is down": of_part([not part.up for part in parts]) > 0,
        "may not use its partition": ~_allowed(table, trace, parts, partition),
        "requests a GPU type that no node has": (rows[:, b.GPU_TYPE] == -2) & (rows[:, b.GPUS] > 0),  # noqa: PLR2004 as _gpu_types
        "has a limit above MaxTime of its partition": table.limit_s[trace.row] > max_time,
        "requests fewer nodes than MinNodes of its partition": nodes < of_part([part.min_nodes for part in parts]),
        "requests more nodes than MaxNodes of its partition": nodes > max_nodes,
        "does not fit on the nodes of its partition": _fitting(rows, laid) < nodes,
    }


def _allowed(table: JobTable, trace: Trace, parts: tuple[Partition, ...], partition: Ints) -> Flags:
    """Return for each job whether its account and QOS may use its partition; one that is not known may."""
    found = np.ones(len(trace), np.bool_)
    for texts, allow, deny in (
        (table.account, [part.allow_accounts for part in parts], [part.deny_accounts for part in parts]),
        (table.qos, [part.allow_qos for part in parts], [part.deny_qos for part in parts]),
    ):
        by_code = [
            [not name or ((not yes or name in yes) and name not in no) for name in texts.values]
            for yes, no in zip(allow, deny, strict=True)
        ]
        found &= np.array(by_code, np.bool_)[partition, texts.codes[trace.row]]
    return found


def _fitting(rows: Ints, laid: NodeLayout) -> Ints:
    """Return on how many idle nodes of its partition each job fits."""
    columns = [b.PARTITION, b.CPUS, b.MEMORY, b.GPUS, b.GPU_TYPE]
    kinds, place = np.unique(rows[:, columns], axis=0, return_inverse=True)
    # Classes of equal nodes: a cluster has few of them, and a log has many kinds of jobs.
    _, first = np.unique(laid.full[:, b.CLASS], return_index=True)
    sizes = np.bincount(laid.full[:, b.CLASS])
    found = np.zeros(len(kinds), np.int64)
    for klass, (row, size) in enumerate(zip(laid.full[first], sizes, strict=True)):
        gpus = row[np.where(kinds[:, 4] >= 0, b.FIRST_TYPE + kinds[:, 4], b.FREE_GPUS)]
        fit = (row[b.FREE_CPUS] >= kinds[:, 1]) & (row[b.FREE_MEMORY] >= kinds[:, 2]) & (gpus >= kinds[:, 3])
        found += np.where(fit & laid.in_partition[np.maximum(kinds[:, 0], 0), klass], size, 0)
    return found[place.reshape(-1)]


def new_board(
    requests: Requests, users: Categories, accounts: Categories, model: ClusterModel, laid: NodeLayout
) -> Board:
    """Return a board; the rows of `requests` are copied, `users` and `accounts` name theirs.

    Raises ConfigError for invalid settings.
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
    """Return for each class how many nodes have at least 0, 1, 2 .. of something."""
    levels = np.arange(min(int(amounts.max()), _MOST_LEVELS) + 1)
    found = np.zeros((classes.max() + 1, len(levels)), np.int64)
    np.add.at(found, classes, amounts[:, None] >= levels)
    return found


def _named(groups: list[frozenset[str]], texts: Categories) -> Flags:
    rows = [[name in names for name in texts.values] for names in groups]
    return np.array(rows, np.bool_).reshape(len(groups), len(texts.values))
