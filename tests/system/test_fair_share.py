"""Fair Tree and classic fair share against sshare on a real slurmctld with accounting, on random trees."""

import os
import random

import numpy as np
import pytest
from tests.conftest import ClusterFactory
from tests.system.account_trees import draw, plant, shares, uproot

from gpuwaste.sim.accounts import AccountTable, accounts_of
from gpuwaste.sim.fair_tree import fair_tree
from gpuwaste.sim.slurm.ranks import classic
from gpuwaste.testing.cluster import Variant
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]

CODE_S_RULE = False  # tied accounts are not merged
TREES = int(os.environ.get("GPUWASTE_ACCOUNT_TREES", "3"))
SETTINGS = """PriorityType=priority/multifactor
PriorityWeightFairshare=1000000
PriorityDecayHalfLife=0
PriorityUsageResetPeriod=NONE
"""


def chance_of() -> random.Random:
    """Return what trees are drawn from; a failure names its seed."""
    seed = int(os.environ.get("GPUWASTE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"GPUWASTE_SEED={seed}")  # noqa: T201 - pytest shows it when a test fails
    return random.Random(seed)


def test_fair_tree_is_sshare_s(make_cluster: ClusterFactory) -> None:
    """On random trees of accounts each LevelFS and each user's FairShare is what sshare prints."""
    cluster, chance, users = make_cluster(Variant(slurm_conf=SETTINGS)), chance_of(), 0
    for number in range(TREES):
        tree = draw(chance, f"t{number}x")
        accounts = accounts_of(plant(cluster, tree))
        seen, expected = shares(cluster), by_fair_tree(accounts)
        assert {key: seen[key] for key in expected} == expected, f"tree {number}: {tree}"
        users += accounts.tree.users
        uproot(cluster, tree)
    print(f"{TREES} trees, {users} users")  # noqa: T201 - pytest -s shows how much was compared


def test_classic_fair_share_is_sshare_s(make_cluster: ClusterFactory) -> None:
    """With NO_FAIR_TREE each user's FairShare is what sshare prints, on a few random trees."""
    cluster, chance = make_cluster(Variant(slurm_conf=f"{SETTINGS}PriorityFlags=NO_FAIR_TREE\n")), chance_of()
    for number in range(min(TREES, 10)):
        tree = draw(chance, f"t{number}x")
        accounts = accounts_of(plant(cluster, tree))
        seen, expected = shares(cluster), by_classic(accounts, oblivious=False)
        assert {key: seen[key][1] for key in expected} == expected, f"tree {number}: {tree}"
        uproot(cluster, tree)


def test_depth_oblivious_fair_share_is_sshare_s(make_cluster: ClusterFactory) -> None:
    """With DEPTH_OBLIVIOUS it is so once slurmctld knows all siblings' usage, which it learns one period later."""
    settings = f"{SETTINGS}PriorityCalcPeriod=1\nPriorityFlags=DEPTH_OBLIVIOUS\n"
    cluster, tree = make_cluster(Variant(slurm_conf=settings)), draw(chance_of(), "t")
    expected = by_classic(accounts_of(plant(cluster, tree)), oblivious=True)
    seen: dict[tuple[str, str], str] = {}

    def settled() -> bool:
        found = shares(cluster)
        seen.update({key: found[key][1] for key in expected})
        return seen == expected

    wait_until(settled, 200, f"sshare to print {expected} for {tree}", lambda: str(seen), poll_s=2)


def summed(accounts: AccountTable) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return usage with that of what is below."""
    usage = accounts.usage.copy()
    for k in accounts.tree.order[:0:-1]:
        usage[accounts.tree.parent[k]] += usage[k]
    return usage


def by_fair_tree(accounts: AccountTable) -> dict[tuple[str, str], tuple[str, str]]:
    """Return LevelFS and FairShare as sshare prints them; it leaves LevelFS empty for shares of the parent."""
    n = len(accounts.associations)
    factor, level = np.zeros(n), np.zeros(n)
    fair_tree(accounts.tree, summed(accounts), CODE_S_RULE, factor, level)
    return {
        (one.account, one.user): (
            "" if one.shares is None else f"{level[k]:.6f}",
            f"{factor[k]:.6f}" if one.user else "",
        )
        for k, one in enumerate(accounts.associations)
        if k != accounts.tree.root
    }


def by_classic(accounts: AccountTable, *, oblivious: bool) -> dict[tuple[str, str], str]:
    """Return the FairShare of who has shares: for those who share as the parent sshare prints what no job gets."""
    factor, dampening = np.zeros(len(accounts.associations)), 1.0
    classic(accounts.tree, summed(accounts), dampening, oblivious, factor)
    return {
        (one.account, one.user): f"{factor[k]:.6f}"
        for k, one in enumerate(accounts.associations)
        if one.user and one.shares is not None
    }
