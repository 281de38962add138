"""Fair Tree and classic fair share against sshare on a real slurmctld with accounting, on random trees."""

import os
import random

import numpy as np
import pytest
from tests.conftest import ClusterFactory
from tests.system.account_trees import draw, plant, shares, uproot

from gpuwaste.sim.accounts import accounts_of
from gpuwaste.sim.fair_tree import fair_tree
from gpuwaste.testing.cluster import Variant

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]

CODE_S_RULE = False  # tied accounts are not merged
TREES = int(os.environ.get("GPUWASTE_TREES", "3"))
SETTINGS = """PriorityType=priority/multifactor
PriorityWeightFairshare=1000000
PriorityDecayHalfLife=0
PriorityUsageResetPeriod=NONE
"""


def test_fair_tree_is_sshare_s(make_cluster: ClusterFactory) -> None:
    """On random trees of accounts each LevelFS and each user's FairShare is what sshare prints."""
    cluster = make_cluster(Variant(slurm_conf=SETTINGS))
    seed = int(os.environ.get("GPUWASTE_SEED", random.SystemRandom().randrange(10**6)))
    chance = random.Random(seed)
    users = 0
    for number in range(TREES):
        tree = draw(chance, f"t{number}x")
        accounts = accounts_of(plant(cluster, tree))
        seen = shares(cluster)
        n = len(accounts.associations)
        usage, factor, level = accounts.usage.copy(), np.zeros(n), np.zeros(n)
        for k in accounts.tree.order[:0:-1]:
            usage[accounts.tree.parent[k]] += usage[k]
        fair_tree(accounts.tree, usage, CODE_S_RULE, factor, level)
        ours = {
            (one.account, one.user): (
                "" if one.shares is None else f"{level[k]:.6f}",  # sshare leaves it empty for shares of the parent
                f"{factor[k]:.6f}" if one.user else "",
            )
            for k, one in enumerate(accounts.associations)
            if k != accounts.tree.root
        }
        del seen["root", ""]
        assert seen == ours, f"GPUWASTE_SEED={seed}, tree {number} of {TREES}: {tree}"
        users += accounts.tree.users
        uproot(cluster, tree)
    print(f"{TREES} trees, {users} users, seed {seed}")  # noqa: T201 - pytest -s shows how much was compared
