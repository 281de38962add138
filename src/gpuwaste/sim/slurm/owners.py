"""Whose the jobs of a board are, and what they hold of each TRES: for fair share and for limits."""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.table import Categories
from gpuwaste.sim.accounts import AccountTable, accounts_of, completed
from gpuwaste.sim.priority_settings import PrioritySettings
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Ints
from gpuwaste.sim.tres import GPU, tres_row
from gpuwaste.sim.usage import billing
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
