"""Multifactor priorities against sprio on a real slurmctld: every factor of pending jobs of many shapes."""

import numpy as np
import pytest
from tests.conftest import ClusterFactory
from tests.system.account_trees import start_with_usage

from gpuwaste.core.units import parse_size_b
from gpuwaste.sim.accounts import AccountTable, accounts_of
from gpuwaste.sim.assoc_limits import tres_row
from gpuwaste.sim.fair_tree import fair_tree
from gpuwaste.sim.multifactor import (
    Norms,
    PriorityJobs,
    PrioritySettings,
    Weighted,
    priority,
    priority_settings,
    weighted,
)
from gpuwaste.slurm.accounting.tres_amounts import parse_tres
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_commands import tres_of
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

NAMES = ("cpu", "mem", "node", "billing", "gres/gpu", "gres/gpu:a100")
WEIGHTS = """PriorityType=priority/multifactor
PriorityWeightAge=100000
PriorityWeightAssoc=3000
PriorityWeightFairshare=77777
PriorityWeightJobSize=5000
PriorityWeightPartition=2000
PriorityWeightQOS=9999
PriorityWeightTRES=CPU=1000,Mem=1500,Node=12.5,GRES/gpu=2500
PriorityMaxAge=00:10:00
PriorityCalcPeriod=1
PriorityDecayHalfLife=0
PriorityUsageResetPeriod=NONE
"""
VARIANTS = {
    "normal": "",
    "small_first": "PriorityFavorSmall=YES\nPriorityFlags=NO_NORMAL_TRES,NO_NORMAL_QOS,NO_NORMAL_PART",
    "by_time": "PriorityFlags=SMALL_RELATIVE_TO_TIME,NO_NORMAL_ASSOC",
}
QOS = {"normal": 0, "high": 200, "low": 30}
PARTITIONS = {"gpu": 10, "cpu": 40, "whole": 1}
ASSOC = {"alice": 5, "bob": 0, "carol": 20}
SUBMITTED: tuple[tuple[str, dict[str, str | int]], ...] = (
    ("alice", {"n": 1}),
    ("alice", {"n": 3, "p": "cpu", "qos": "high", "mem": "3000M", "time": 90}),
    ("bob", {"gres": "gpu:a100:2", "N": 2, "nice": 40, "time": "2-0"}),
    ("bob", {"p": "gpu", "c": 16, "qos": "low", "nice": 500000}),
    ("carol", {"p": "cpu", "n": 16, "mem": 60000, "time": 1}),
    ("carol", {"gres": "gpu:1", "qos": "high", "time": 7}),
)


def prepare(cluster: LoopbackCluster) -> AccountTable:
    """Set priorities and shares, let nothing start; returns the associations with their usage."""
    for name, value in QOS.items():
        made = [] if name == "normal" else [["sacctmgr", "-i", "add", "qos", name]]
        for argv in [*made, ["sacctmgr", "-i", "modify", "qos", name, "set", f"priority={value}"]]:
            cluster.run(argv)
    cluster.run(["sacctmgr", "-i", "modify", "account", "root", "set", f"qos={','.join(QOS)}"])
    for name, value in ASSOC.items():
        cluster.run(["sacctmgr", "-i", "modify", "user", name, "set", f"priority={value}", f"fairshare={value + 1}"])
    cluster.processes["slurmctld"].stop()
    usage = {("proj1", "alice"): 1000, ("proj1", "bob"): 3000, ("proj2", "carol"): 500}
    accounts = accounts_of(start_with_usage(cluster, usage))
    for name, value in PARTITIONS.items():
        cluster.run(["scontrol", "update", f"partition={name}", f"PriorityJobFactor={value}"])
    cluster.run(["scontrol", "update", "nodename=ALL", "state=drain", "reason=test"])
    return accounts


def amounts(text: str) -> dict[str, float]:
    """Return the amounts of a TRES list; memory in MiB, as Slurm weighs it."""
    found = parse_tres(text)
    return {
        name: (parse_size_b(given) or 0) / 2**20 if name == "mem" else float(given) for name, given in found.items()
    }


def expected(cluster: LoopbackCluster, jobs: list[int], chosen: PrioritySettings) -> Weighted:
    """Return the parts of the priorities of submitted jobs, from what Slurm says of jobs, partitions and nodes."""
    shown = [cluster.show_job(job)[0] for job in jobs]
    text = cluster.run(["scontrol", "-o", "show", "partition"]).stdout
    rows = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in text.splitlines()]
    available = {row["PartitionName"]: tres_row(NAMES, amounts(row["TRES"])) for row in rows}
    held = [tres_row(NAMES, amounts(tres_of(job))) for job in shown]
    arrays = PriorityJobs(
        nodes=np.array([int(job["NumNodes"].split("-")[0]) for job in shown]),
        cpus=np.array([int(job["NumCPUs"].split("-")[0]) for job in shown]),
        limit_s=np.array([limit_s(job["TimeLimit"]) for job in shown]),
        amounts=np.array(held),
        available=np.array([available[job["Partition"]] for job in shown]),
        partition=np.array([float(PARTITIONS[job["Partition"]]) for job in shown]),
        qos=np.array([float(QOS[job["QOS"]]) for job in shown]),
        assoc=np.array([float(ASSOC[job["UserId"].split("(")[0]]) for job in shown]),
        nice=np.array([float(job["Nice"]) for job in shown]),
    )
    norms = Norms(3, 48, max(PARTITIONS.values()), max(QOS.values()), max(ASSOC.values()))
    weights = {**chosen.weight_tres, "mem": chosen.weight_tres["mem"] * 2**20}
    return weighted(arrays, norms, chosen, tres_row(NAMES, weights))


def limit_s(text: str) -> int:
    days, _, clock = text.rpartition("-")
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds


def sprio(cluster: LoopbackCluster) -> dict[int, list[str]]:
    """Return by job: normalised age and fair share, weighted assoc, size, partition, QOS, nice, priority, TRES."""
    argv = ["sprio", "-h", "-o", "%i %a %f %B %J %P %Q %N %Y %T"]
    return {int(row[0]): row[1:] for line in cluster.run(argv).stdout.splitlines() if (row := line.split())}


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_factor_is_sprio_s(variant: str, make_cluster: ClusterFactory) -> None:
    """Each weighted factor and each whole priority of pending jobs is what sprio prints, at submit and with age."""
    text = f"{WEIGHTS}{VARIANTS[variant]}\n"
    cluster = make_cluster(Variant(slurm_conf=text))
    accounts = prepare(cluster)
    chosen = priority_settings(dict(line.split("=", 1) for line in text.split("\n") if line))
    tree, n = accounts.tree, len(accounts.associations)
    usage, factor, level = accounts.usage.copy(), np.zeros(n), np.zeros(n)
    for k in tree.order[:0:-1]:
        usage[tree.parent[k]] += usage[k]
    merge = False
    fair_tree(tree, usage, merge, factor, level)
    fair = {one.user: factor[k] for k, one in enumerate(accounts.associations) if one.user}
    jobs = [cluster.sbatch("true", user=user, **options) for user, options in SUBMITTED]
    parts = expected(cluster, jobs, chosen)

    def compare() -> None:
        seen = sprio(cluster)
        for place, (job, (user, _)) in enumerate(zip(jobs, SUBMITTED, strict=True)):
            age, share, assoc, size, partition, qos, nice, total, tres = seen[job]
            age_s = round(float(age) * chosen.max_age_s)
            assert share == f"{fair[user]:.7f}"
            found = [f"{part[place]:.0f}" for part in (parts.assoc, parts.size, parts.partition, parts.qos, parts.nice)]
            assert found == [assoc, size, partition, qos, nice]
            assert sum(map(float, parse_tres(tres).values())) == pytest.approx(parts.tres[place], abs=len(NAMES))
            assert priority(parts, place, age_s, fair[user]) == int(total)

    compare()
    if variant != "normal":
        return  # age does not depend on the flags, and slurmctld adds it after a minute at the earliest
    wait_until(lambda: float(sprio(cluster)[jobs[0]][0]) > 0, 100, "the priorities to be computed again", poll_s=0.5)
    compare()
