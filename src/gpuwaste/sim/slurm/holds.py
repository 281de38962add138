"""The owners of a board's jobs, what they hold, and which of them a limit of a QOS or an association holds back."""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.job_table import Categories
from gpuwaste.sim.accounts import AccountTable, accounts_of, completed
from gpuwaste.sim.assoc_limits import BILLING, GPU, limit_table, no_use, qos_order, reason, tres_names, tres_row
from gpuwaste.sim.compiled import in_place
from gpuwaste.sim.fair_tree import billing, decayed
from gpuwaste.sim.limit_checks import MAY_START, charge_wall, count_job, held_by
from gpuwaste.sim.multifactor import PrioritySettings, priority_settings
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Board, Holds, Ints
from gpuwaste.slurm.site.cluster_model import ClusterModel

Floats = NDArray[np.float64]


def owners_of(jobs: Ints, users: Categories, accounts: Categories, model: ClusterModel) -> tuple[AccountTable, Ints]:
    """Return the tree of accounts, with those of the jobs that the cluster does not know, and each job's node [n]."""
    pairs = np.stack([jobs[:, b.ACCOUNT], jobs[:, b.USER], jobs[:, b.PARTITION]], axis=1)
    kinds, of_job = np.unique(pairs, axis=0, return_inverse=True)
    texts = [
        (accounts.values[one], users.values[two], model.partitions[part].name) for one, two, part in kinds.tolist()
    ]
    found = accounts_of(completed(model.associations, [(account, user) for account, user, _ in texts]))
    nodes = np.array([found.node(one or "root", two, part) for one, two, part in texts], np.int64)
    return found, nodes[of_job.reshape(-1)]


def usage_factors(model: ClusterModel, qos: Ints) -> Floats:
    """Return UsageFactor of the QOS of each job [n], 1 without one."""
    return np.array([each.usage_factor for each in model.qos] + [1.0])[qos]


def billing_of(
    jobs: Ints, amounts: Floats, names: tuple[str, ...], model: ClusterModel, settings: PrioritySettings
) -> Floats:
    """Return the billing TRES of each job [n], by the weights of its partition."""
    found = np.zeros(len(jobs))
    for place, part in enumerate(model.partitions):
        inside = jobs[:, b.PARTITION] == place
        weights = tres_row(names, part.billing_weights) if part.billing_weights else None
        found[inside] = billing(amounts[inside], weights, max_tres="MAX_TRES" in settings.flags)
    return found


def amounts_of(jobs: Ints, names: tuple[str, ...], model: ClusterModel) -> Floats:
    """Return what jobs hold of each TRES [n, TRES]."""
    types = sorted({kind for node in model.nodes if not node.down for kind in node.gpus})
    found = np.zeros((len(jobs), len(names)))
    nodes = jobs[:, b.NODES]
    for name, column in (("cpu", b.CPUS), ("mem", b.MEMORY), (GPU, b.GPUS)):
        found[:, names.index(name)] = nodes * jobs[:, column]
    found[:, names.index("node")] = nodes
    for place, kind in enumerate(types):
        if kind:
            found[:, names.index(f"{GPU}:{kind}")] = np.where(jobs[:, b.GPU_TYPE] == place, nodes * jobs[:, b.GPUS], 0)
    return found


def holds_of(jobs: Ints, qos: Ints, users: Categories, accounts: Categories, model: ClusterModel) -> Holds:
    """Return the limits of jobs, rows of a board; where the cluster has none, the rows are empty.

    Raises ConfigError for invalid settings.
    """
    settings, names = priority_settings(model.settings), tres_names(model)
    found, assoc = owners_of(jobs, users, accounts, model)
    table = limit_table(model, found, names, safe=settings.safe, hold=settings.limits)
    if not table.any_limit:
        jobs, qos, assoc = jobs[:0], qos[:0], assoc[:0]
    amounts = amounts_of(jobs, names, model)
    amounts[:, BILLING] = billing_of(jobs, amounts, names, model, settings)
    places = {each.name: place for place, each in enumerate(model.qos)}
    parts = [places.get(part.qos, -1) for part in model.partitions]
    rows = [
        qos_order(model, own, parts[part])
        for own, part in zip(qos.tolist(), jobs[:, b.PARTITION].tolist(), strict=True)
    ]
    return Holds(
        table=table,
        use=no_use(table, int(jobs[:, b.USER].max(initial=0)) + 1),
        qos=np.array(rows, np.int64).reshape(-1, 2),
        assoc=assoc,
        amounts=amounts,
        factor=usage_factors(model, qos),
    )


def held_jobs(board: Board, model: ClusterModel) -> dict[str, int]:
    """Return how many jobs of a play were ever held back, by Slurm's word for what held each one last."""
    codes, counts = np.unique(board.jobs[:, b.HELD_BY], return_counts=True)
    names = tres_names(model)
    return {reason(names, code): count for code, count in zip(codes.tolist(), counts.tolist(), strict=True) if code}


@in_place
def is_held(board: Board, number: int) -> bool:
    """Return whether a limit holds a job back now, and note which one."""
    holds, job = board.holds, board.jobs[number]
    if not holds.table.any_limit:
        return False
    qos = (holds.qos[number, 0], holds.qos[number, 1])
    code = held_by(holds.table, holds.use, qos, holds.assoc[number], job[b.USER], holds.amounts[number], job[b.LIMIT])
    if code != MAY_START:
        job[b.HELD_BY] = code
    return code != MAY_START


@in_place
def count(board: Board, number: int, sign: int) -> None:
    """Add a job that starts (1) to what is used of limits, or take one off that has left its nodes (-1)."""
    holds = board.holds
    if holds.table.any_limit:
        qos = (holds.qos[number, 0], holds.qos[number, 1])
        user = board.jobs[number, b.USER]
        count_job(holds.table, holds.use, qos, holds.assoc[number], user, holds.amounts[number], sign)


@in_place
def charge(board: Board, number: int, per_second: float, since: int, until: int) -> None:
    """Add a job's wall time to what GrpWall counts; with priority/basic it is not counted."""
    holds = board.holds
    if holds.table.any_limit:
        qos = (holds.qos[number, 0], holds.qos[number, 1])
        seconds = decayed(since, until, per_second) * holds.factor[number]
        charge_wall(holds.table, holds.use, qos, holds.assoc[number], seconds)
