"""Limits of QOS and associations: which job may start now, and Slurm's reason where it may not.

The order and the precedence are those of slurmctld's accounting policy: the partition's QOS before the job's (the other
way round with OverPartQOS), then the association and what is above it. A limit that one sets, those after it do not; a
group limit holds at each account above, a limit per job or user as the nearest one sets it. Not modelled: submit limits
(a trace holds what was accepted), minutes of TRES, limits per account, and that Slurm counts a node that two jobs of a
group share once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.accounts import Accounts
from gpuwaste.sim.cluster import ClusterModel, Limits, Tres
from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.tres import NODE, tres_row

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
GRP_JOBS, GRP_WALL, MAX_JOBS, MAX_WALL = range(4)
GROUP, PER_JOB, PER_NODE, PER_USER = range(4)
MAY_START: Final = 0
_COUNTS: Final = 4
_KINDS: Final = 4
_TRES_CODES: Final = 1 + 2 * _COUNTS
_COUNT_REASONS: Final = (
    "QOSGrpJobsLimit", "QOSGrpWallLimit", "QOSMaxJobsPerUserLimit", "QOSMaxWallDurationPerJobLimit",
    "AssocGrpJobsLimit", "AssocGrpWallLimit", "AssocMaxJobsLimit", "AssocMaxWallDurationPerJobLimit",
)  # fmt: skip
_TRES_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu": (
        "QOSGrpCpuLimit", "QOSMaxCpuPerJobLimit", "QOSMaxCpuPerNode", "QOSMaxCpuPerUserLimit",
        "AssocGrpCpuLimit", "AssocMaxCpuPerJobLimit", "AssocMaxCpuPerNode",
    ),
    "mem": (
        "QOSGrpMemLimit", "QOSMaxMemoryPerJob", "QOSMaxMemoryPerNode", "QOSMaxMemoryPerUser",
        "AssocGrpMemLimit", "AssocMaxMemPerJob", "AssocMaxMemPerNode",
    ),
    "node": (
        "QOSGrpNodeLimit", "QOSMaxNodePerJobLimit", "QOSMaxUnknownPerNode", "QOSMaxNodePerUserLimit",
        "AssocGrpNodeLimit", "AssocMaxNodePerJobLimit", "AssocMaxUnknownPerNode",
    ),
    "billing": (
        "QOSGrpBilling", "QOSMaxBillingPerJob", "QOSMaxBillingPerNode", "QOSMaxBillingPerUser",
        "AssocGrpBilling", "AssocMaxBillingPerJob", "AssocMaxBillingPerNode",
    ),
    "gres": (
        "QOSGrpGRES", "QOSMaxGRESPerJob", "QOSMaxGRESPerNode", "QOSMaxGRESPerUser",
        "AssocGrpGRES", "AssocMaxGRESPerJob", "AssocMaxGRESPerNode",
    ),
}  # fmt: skip


class LimitTable(NamedTuple):
    """Limits for compiled code; infinity stands for none. The last row of QOS, which place -1 finds, has none.

    `qos_counts` [Q + 1, 4] and `assoc_counts` [A, 4] by GRP_JOBS, GRP_WALL, MAX_JOBS, MAX_WALL (walls in seconds),
    `above_counts` the same without limits that hold for the association of a job only, `qos_tres` and `assoc_tres`
    [.., 4, TRES] by GROUP, PER_JOB, PER_NODE, PER_USER. `parent` [A]: the account above.
    """

    qos_counts: Floats
    qos_tres: Floats
    assoc_counts: Floats
    above_counts: Floats
    assoc_tres: Floats
    parent: Ints
    safe: bool
    any_limit: bool


class LimitUse(NamedTuple):
    """What running jobs use of limits: jobs, wall (s, decayed) and TRES by QOS, by QOS and user, by association."""

    qos_jobs: Floats
    qos_wall: Floats
    qos_tres: Floats
    user_jobs: Floats
    user_tres: Floats
    assoc_jobs: Floats
    assoc_wall: Floats
    assoc_tres: Floats


def limit_table(model: ClusterModel, accounts: Accounts, names: Sequence[str], *, safe: bool, hold: bool) -> LimitTable:
    """Return the limits of a cluster: QOS by their place in the model, associations by their node of `accounts`.

    `names` are the columns of tres.py. `hold`: whether AccountingStorageEnforce lets limits hold at all.
    """
    qos = [*(each.limits if hold else Limits() for each in model.qos), Limits()]
    assoc = [each.limits if hold else Limits() for each in accounts.associations]
    assoc_counts, assoc_tres = _counts(assoc), _tres(assoc, names)
    parent = accounts.tree.parent
    for k in accounts.tree.order[1:]:
        own, above = assoc_counts[k], assoc_counts[parent[k]]
        own[MAX_JOBS:] = np.where(np.isinf(own[MAX_JOBS:]), above[MAX_JOBS:], own[MAX_JOBS:])
        rows, up = assoc_tres[k], assoc_tres[parent[k]]
        rows[PER_JOB:PER_USER] = np.where(
            np.isinf(rows[PER_JOB:PER_USER]), up[PER_JOB:PER_USER], rows[PER_JOB:PER_USER]
        )
    above_counts = assoc_counts.copy()
    above_counts[:, MAX_JOBS:] = np.inf
    tables = (_counts(qos), _tres(qos, names), assoc_counts, above_counts, assoc_tres)
    return LimitTable(*tables, parent, safe, any(bool(np.isfinite(table).any()) for table in tables))


def no_use(table: LimitTable, users: int) -> LimitUse:
    """Return the use of an empty cluster, for users numbered from 0."""
    n_qos, n_assoc, width = len(table.qos_counts), len(table.assoc_counts), table.assoc_tres.shape[2]
    per_user = np.isfinite(table.qos_counts[:, MAX_JOBS]).any() or np.isfinite(table.qos_tres[:, PER_USER]).any()
    users = users if per_user else 1
    return LimitUse(
        np.zeros(n_qos),
        np.zeros(n_qos),
        np.zeros((n_qos, width)),
        np.zeros((n_qos, users)),
        np.zeros((n_qos, users, width)),
        np.zeros(n_assoc),
        np.zeros(n_assoc),
        np.zeros((n_assoc, width)),
    )


def unmodelled(model: ClusterModel, names: Sequence[str]) -> tuple[str, ...]:
    """Return the TRES that a limit of the cluster names and that are no column (licenses, energy): not enforced."""
    limits = [*(each.limits for each in model.qos), *(each.limits for each in model.associations)]
    found = {name.lower() for one in limits for kind in _tres_kinds(one) for name in kind}
    return tuple(sorted(found - {name.lower() for name in names}))


def _tres_kinds(one: Limits) -> tuple[Tres, ...]:
    """Return limits of TRES by GROUP, PER_JOB, PER_NODE, PER_USER."""
    return one.grp_tres, one.max_tres_per_job, one.max_tres_per_node, one.max_tres_per_user


def qos_order(model: ClusterModel, qos: int, partition_qos: int) -> tuple[int, int]:
    """Return the QOS that limit a job, the stronger one first: places in the model, -1 for none."""
    if qos < 0 or partition_qos in {-1, qos}:
        return (qos if qos >= 0 else partition_qos), -1
    over = any(flag.lower() == "overpartqos" for flag in model.qos[qos].flags)
    return (qos, partition_qos) if over else (partition_qos, qos)


def reason(names: Sequence[str], code: int) -> str:
    """Return Slurm's word for a code of held_by(), as squeue prints it; "" for a job that may start."""
    if code < _TRES_CODES:
        return _COUNT_REASONS[code - 1] if code else ""
    kind, column = divmod(code - _TRES_CODES, len(names))
    return _TRES_REASONS[names[column].partition("/")[0]][kind]


def _counts(limits: Sequence[Limits]) -> Floats:
    read: tuple[Callable[[Limits], int | None], ...] = (
        lambda one: one.grp_jobs,
        lambda one: one.grp_wall_s,
        lambda one: one.max_jobs_per_user,
        lambda one: one.max_wall_s,
    )
    rows = [[np.inf if (found := get(one)) is None else found for get in read] for one in limits]
    return np.array(rows, dtype=np.float64).reshape(len(limits), _COUNTS)


def _tres(limits: Sequence[Limits], names: Sequence[str]) -> Floats:
    rows = [[tres_row(names, kind, absent=np.inf) for kind in _tres_kinds(one)] for one in limits]
    return np.array(rows, dtype=np.float64).reshape(len(limits), _KINDS, len(names))


@compiled
def counts_hold(
    limits: Floats, stronger: tuple[Floats, Floats], jobs: tuple[float, float], wall: float, limit_s: int, safe: bool
) -> int:
    """Return 1 and the place of the first count limit [4] that holds a job back, 0 for none.

    What one of `stronger` limits, counts no more. `jobs` are those of the group and those that MAX_JOBS counts.
    """
    for k in range(_COUNTS):
        if limits[k] == np.inf or stronger[0][k] < np.inf or stronger[1][k] < np.inf:
            continue
        if k == GRP_WALL:
            minutes = wall // 60.0
            held = minutes >= limits[k] // 60.0 or (safe and minutes * 60.0 + limit_s > limits[k])
        elif k == MAX_WALL:
            held = limit_s > limits[k]
        else:
            held = jobs[0 if k == GRP_JOBS else 1] >= limits[k]
        if held:
            return 1 + k
    return 0


@compiled
def tres_hold(limits: Floats, stronger: tuple[Floats, Floats], used: Floats, amounts: Floats, nodes: float) -> int:
    """Return the column of the first TRES limit that a job of these amounts would exceed, -1 for none.

    With `nodes` it is a limit of each node, of which the job has that many.
    """
    for k in range(len(amounts)):
        if amounts[k] == 0.0 or limits[k] == np.inf or stronger[0][k] < np.inf or stronger[1][k] < np.inf:
            continue
        if (amounts[k] // nodes if nodes > 0.0 else amounts[k] + used[k]) > limits[k]:
            return k
    return -1


@compiled
def held_by(
    table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, amounts: Floats, limit_s: int
) -> int:
    """Return what holds a job back now: MAY_START, or a code that reason() names.

    `qos` as qos_order() has it, `assoc` the node of its association (-1: none), `amounts` [TRES], `limit_s` seconds.
    With use of an empty cluster: what would hold it back for ever.
    """
    if not table.any_limit:
        return MAY_START
    found = counts_of(table, use, qos, assoc, user, limit_s)
    return found if found != MAY_START else tres_of(table, use, qos, assoc, user, amounts)


@compiled
def counts_of(table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, limit_s: int) -> int:
    """Return the code of the first limit of jobs or walls that holds a job back, MAY_START for none."""
    none = table.qos_counts[-1]
    first, second = table.qos_counts[qos[0]], table.qos_counts[qos[1]]
    user = min(user, use.user_jobs.shape[1] - 1)
    for turn in range(2):
        one = qos[turn]
        jobs, stronger = (use.qos_jobs[one], use.user_jobs[one, user]), (none if turn == 0 else first, none)
        limits = first if turn == 0 else second
        found = counts_hold(limits, stronger, jobs, use.qos_wall[one], limit_s, table.safe)
        if found > 0:
            return found
    k = assoc
    while k >= 0:
        jobs, wall = (use.assoc_jobs[k], use.assoc_jobs[k]), use.assoc_wall[k]
        limits = table.assoc_counts[k] if k == assoc else table.above_counts[k]
        found = counts_hold(limits, (first, second), jobs, wall, limit_s, table.safe)
        if found > 0:
            return found + _COUNTS
        k = table.parent[k]
    return MAY_START


@compiled
def tres_of(table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, amounts: Floats) -> int:
    """Return the code of the first limit of TRES that holds a job back, MAY_START for none."""
    width, nothing = len(amounts), use.qos_tres[-1]
    nodes = max(1.0, amounts[NODE])
    user = min(user, use.user_jobs.shape[1] - 1)
    for turn in range(2):
        one = qos[turn]
        for kind in range(_KINDS):
            none = table.qos_tres[-1, kind]
            stronger = (none if turn == 0 else table.qos_tres[qos[0], kind], none)
            used = use.qos_tres[one] if kind == GROUP else use.user_tres[one, user] if kind == PER_USER else nothing
            by_node = nodes if kind == PER_NODE else 0.0
            column = tres_hold(table.qos_tres[one, kind], stronger, used, amounts, by_node)
            if column >= 0:
                return _TRES_CODES + kind * width + column
    k = assoc
    while k >= 0:
        for kind in range(PER_USER if k == assoc else PER_JOB):
            stronger = (table.qos_tres[qos[0], kind], table.qos_tres[qos[1], kind])
            used = use.assoc_tres[k] if kind == GROUP else nothing
            by_node = nodes if kind == PER_NODE else 0.0
            column = tres_hold(table.assoc_tres[k, kind], stronger, used, amounts, by_node)
            if column >= 0:
                return _TRES_CODES + (_KINDS + kind) * width + column
        k = table.parent[k]
    return MAY_START


@compiled
def count_job(
    table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, amounts: Floats, sign: int
) -> None:
    """Add a job that starts (sign 1) to what is used, or take off one that ended (-1)."""
    if not table.any_limit:
        return
    user = min(user, use.user_jobs.shape[1] - 1)
    for one in qos:
        if one >= 0:
            use.qos_jobs[one] += sign
            use.qos_tres[one] += sign * amounts
            use.user_jobs[one, user] += sign
            use.user_tres[one, user] += sign * amounts
    while assoc >= 0:
        use.assoc_jobs[assoc] += sign
        use.assoc_tres[assoc] += sign * amounts
        assoc = table.parent[assoc]


@compiled
def charge_wall(table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, seconds: float) -> None:
    """Add to what GrpWall counts: usage.decayed() of a running job times the UsageFactor of its QOS, each period."""
    for one in qos:
        if one >= 0:
            use.qos_wall[one] += seconds
    while assoc >= 0:
        use.assoc_wall[assoc] += seconds
        assoc = table.parent[assoc]
