"""Limits of QOS and associations as arrays over TRES, what jobs use of them, and Slurm's reasons (limit_checks.py)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.accounts import AccountTable
from gpuwaste.slurm.site import limit_order
from gpuwaste.slurm.site.cluster_model import ClusterModel, LimitSet, Tres

Floats = NDArray[np.float64]
CPU, MEM, NODE, BILLING = range(4)
"""Columns that every model has; memory is counted in bytes."""
BASE: Final = ("cpu", "mem", "node", "billing")
GPU: Final = "gres/gpu"
Ints = NDArray[np.int64]
GRP_JOBS, GRP_WALL, MAX_JOBS, MAX_WALL = range(4)
GROUP, PER_JOB, PER_NODE, PER_USER = range(4)
COUNTS: Final = 4
KINDS: Final = 4
TRES_CODES: Final = 1 + 2 * COUNTS
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


def tres_names(model: ClusterModel) -> tuple[str, ...]:
    """Return the columns of a cluster: cpu, mem, node, billing, gres/gpu and each type of GPU by name."""
    types = {kind for node in model.nodes for kind in node.gpus if kind}
    return (*BASE, GPU, *(f"{GPU}:{kind}" for kind in sorted(types)))


def tres_row(names: Sequence[str], amounts: Mapping[str, float], absent: float = 0.0) -> Floats:
    """Return a row [len(names)] of amounts; `absent` where a name has none. Names without a column are left out."""
    known = {name.lower(): amount for name, amount in amounts.items()}
    return np.array([known.get(name.lower(), absent) for name in names], dtype=np.float64)


class LimitTable(NamedTuple):
    """Limits for compiled code; infinity means no limit. The last row of QOS, which place -1 finds, has none.

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


def limit_table(
    model: ClusterModel, accounts: AccountTable, names: Sequence[str], *, safe: bool, hold: bool
) -> LimitTable:
    """Return the limits of a cluster: QOS by their place in the model, associations by their node of `accounts`.

    `names` are the TRES. `hold`: whether AccountingStorageEnforce lets limits hold at all.
    """
    qos = [*(each.limits if hold else LimitSet() for each in model.qos), LimitSet()]
    assoc = [each.limits if hold else LimitSet() for each in accounts.associations]
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


def no_limits() -> LimitTable:
    """Return the table of a cluster where no limit holds, without TRES."""
    counts, tres = np.full((1, COUNTS), np.inf), np.full((1, KINDS, 0), np.inf)
    parent = np.full(1, -1, np.int64)
    return LimitTable(counts, tres, counts.copy(), counts.copy(), tres.copy(), parent, safe=False, any_limit=False)


def unmodelled(model: ClusterModel, names: Sequence[str]) -> tuple[str, ...]:
    """Return the TRES that a limit of the cluster names and that have no column (licenses, energy): not enforced."""
    limits = [*(each.limits for each in model.qos), *(each.limits for each in model.associations)]
    found = {name.lower() for one in limits for kind in _tres_kinds(one) for name in kind}
    return tuple(sorted(found - {name.lower() for name in names}))


def _tres_kinds(one: LimitSet) -> tuple[Tres, ...]:
    """Return limits of TRES by GROUP, PER_JOB, PER_NODE, PER_USER."""
    return one.grp_tres, one.max_tres_per_job, one.max_tres_per_node, one.max_tres_per_user


def qos_order(model: ClusterModel, qos: int, partition_qos: int) -> tuple[int, int]:
    """Return the QOS that limit a job, the stronger one first: places in the model, -1 for none."""
    return limit_order.qos_order(qos, partition_qos, -1, model.qos[qos].flags if qos >= 0 else ())


def reason(names: Sequence[str], code: int) -> str:
    """Return Slurm's word for a code of limit_checks.held_by(), as squeue prints it; "" for a job that may start."""
    if code < TRES_CODES:
        return _COUNT_REASONS[code - 1] if code else ""
    kind, column = divmod(code - TRES_CODES, len(names))
    return _TRES_REASONS[names[column].partition("/")[0]][kind]


def _counts(limits: Sequence[LimitSet]) -> Floats:
    read: tuple[Callable[[LimitSet], int | None], ...] = (
        lambda one: one.grp_jobs,
        lambda one: one.grp_wall_s,
        lambda one: one.max_jobs_per_user,
        lambda one: one.max_wall_s,
    )
    rows = [[np.inf if (found := get(one)) is None else found for get in read] for one in limits]
    return np.array(rows, dtype=np.float64).reshape(len(limits), COUNTS)


def _tres(limits: Sequence[LimitSet], names: Sequence[str]) -> Floats:
    rows = [[tres_row(names, kind, absent=np.inf) for kind in _tres_kinds(one)] for one in limits]
    return np.array(rows, dtype=np.float64).reshape(len(limits), KINDS, len(names))
