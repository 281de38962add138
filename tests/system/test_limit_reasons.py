"""Limits against a real slurmctld: the reasons of jobs that wait are those that squeue prints."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.conftest import ClusterFactory

from gpuwaste.sim.accounts import accounts_of
from gpuwaste.sim.assoc_limits import limit_table, no_use, qos_order, reason, tres_names, tres_row
from gpuwaste.sim.limit_checks import count_job, held_by
from gpuwaste.slurm.site.cluster_model import Association, ClusterModel, LimitSet, Node, Partition, Qos
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

MIB = 2**20
NO_LIMIT = frozenset({"None", "Resources", "Priority", "Prolog"})
NONE = LimitSet()
USERS = {"alice": "proj1", "bob": "proj1", "carol": "proj2"}


@dataclass(frozen=True)
class Case:
    """Limits of the job's QOS and of proj1 and alice, jobs that run, and the one that is asked about."""

    words: str
    qos: LimitSet = NONE
    account: LimitSet = NONE
    alice: LimitSet = NONE
    running: tuple[tuple[str, int], ...] = ()
    user: str = "alice"
    cpus: int = 1
    gpus: int = 0
    minutes: int = 10
    set_qos: str = ""
    set_account: str = ""
    set_alice: str = ""
    running_gpus: int = 0


CASES = (
    Case("QOSMaxJobsPerUserLimit", LimitSet(max_jobs_per_user=1), running=(("alice", 1),), set_qos="maxjobspu=1"),
    Case("", LimitSet(max_jobs_per_user=1), running=(("bob", 1),), set_qos="maxjobspu=1"),
    Case("QOSGrpJobsLimit", LimitSet(grp_jobs=1), running=(("carol", 1),), set_qos="grpjobs=1"),
    Case("QOSGrpCpuLimit", LimitSet(grp_tres={"cpu": 3}), running=(("bob", 2),), cpus=2, set_qos="grptres=cpu=3"),
    Case("", LimitSet(grp_tres={"cpu": 4}), running=(("bob", 2),), cpus=2, set_qos="grptres=cpu=4"),
    Case("QOSMaxCpuPerUserLimit", LimitSet(max_tres_per_user={"cpu": 3}), running=(("alice", 2),), cpus=2,
         set_qos="maxtrespu=cpu=3"),
    Case("QOSMaxCpuPerJobLimit", LimitSet(max_tres_per_job={"cpu": 3}), cpus=4, set_qos="maxtres=cpu=3"),
    Case("QOSMaxGRESPerUser", LimitSet(max_tres_per_user={"gres/gpu": 1}), running=(("alice", 1),), gpus=1,
         running_gpus=1, set_qos="maxtrespu=gres/gpu=1"),
    Case("QOSMaxWallDurationPerJobLimit", LimitSet(max_wall_s=300), set_qos="maxwall=5"),
    Case("QOSGrpMemLimit", LimitSet(grp_tres={"mem": 800 * MIB}), running=(("bob", 1),), set_qos="grptres=mem=800"),
    Case("AssocMaxJobsLimit", alice=LimitSet(max_jobs_per_user=1), running=(("alice", 1),), set_alice="maxjobs=1"),
    Case("AssocGrpCpuLimit", account=LimitSet(grp_tres={"cpu": 3}), running=(("bob", 2),), cpus=2,
         set_account="grptres=cpu=3"),
    Case("AssocGrpGRES", account=LimitSet(grp_tres={"gres/gpu": 2}), running=(("bob", 1),), gpus=2, running_gpus=1,
         set_account="grptres=gres/gpu=2"),
    Case("AssocGrpJobsLimit", account=LimitSet(grp_jobs=1), running=(("bob", 1),), set_account="grpjobs=1"),
    Case("", account=LimitSet(grp_jobs=1), running=(("carol", 1),), set_account="grpjobs=1"),
    Case("AssocMaxWallDurationPerJobLimit", alice=LimitSet(max_wall_s=300), set_alice="maxwall=5"),
    Case("AssocMaxCpuPerJobLimit", account=LimitSet(max_tres_per_job={"cpu": 3}), cpus=4, set_account="maxtres=cpu=3"),
    Case("QOSMaxCpuPerJobLimit", LimitSet(max_tres_per_job={"cpu": 3}), LimitSet(grp_jobs=9), LimitSet(max_wall_s=3600),
         cpus=4, set_qos="maxtres=cpu=3", set_account="grpjobs=9", set_alice="maxwall=60"),
    Case("", LimitSet(max_wall_s=3600), alice=LimitSet(max_wall_s=300), set_qos="maxwall=60", set_alice="maxwall=5"),
)  # fmt: skip
CLEAR = "grptres=cpu=-1,mem=-1,gres/gpu=-1 grpjobs=-1 maxjobs=-1 maxwall=-1 maxtres=cpu=-1"


def ours(case: Case) -> str:
    """Return the reason by the limits' own code."""
    nodes = tuple(Node(f"gpu{k}", 16, 64000 * MIB, {"a100": 4}) for k in (1, 2))
    tree = [Association("root", parent=""), Association("proj1", limits=case.account), Association("proj2")]
    tree += [
        Association(account, user, limits=case.alice if user == "alice" else NONE) for user, account in USERS.items()
    ]
    model = ClusterModel("gw", nodes, (Partition("gpu", ("gpu1", "gpu2")),), (Qos("q", limits=case.qos),), tuple(tree))
    names, accounts = tres_names(model), accounts_of(tree)
    table = limit_table(model, accounts, names, safe=False, hold=True)
    use, order = no_use(table, len(USERS)), qos_order(model, 0, -1)

    def job(user: str, cpus: int, gpus: int) -> tuple[int, int, np.ndarray[tuple[int], np.dtype[np.float64]]]:
        held = {"cpu": cpus, "mem": cpus * 500 * MIB, "node": 1, "billing": cpus, "gres/gpu": gpus}
        return accounts.node(USERS[user], user), list(USERS).index(user), tres_row(names, held)

    for user, cpus in case.running:
        count_job(table, use, order, *job(user, cpus, case.running_gpus), 1)
    return reason(names, held_by(table, use, order, *job(case.user, case.cpus, case.gpus), case.minutes * 60))


def theirs(cluster: LoopbackCluster, case: Case, qos: str) -> str:
    """Return the reason that squeue prints for the job on a cluster with these limits, "" for one that starts."""
    change = ["sacctmgr", "-i", "modify"]
    cluster.run(["sacctmgr", "-i", "add", "qos", qos, *(["set", case.set_qos] if case.set_qos else [])])
    cluster.run([*change, "account", "root", "set", f"qos+={qos}"])
    if case.set_account:
        cluster.run([*change, "account", "proj1", "set", case.set_account])
    if case.set_alice:
        cluster.run([*change, "user", "alice", "set", case.set_alice])
    for user, cpus in case.running:
        gres = {"gres": f"gpu:{case.running_gpus}"} if case.running_gpus else {}
        job = cluster.sbatch("sleep 600", user=user, qos=qos, n=cpus, time=10, w="gpu1", **gres)
        cluster.wait_job(job, "RUNNING")
    gres = {"gres": f"gpu:{case.gpus}"} if case.gpus else {}
    asked = cluster.sbatch("sleep 600", user=case.user, qos=qos, n=case.cpus, time=case.minutes, w="gpu1", **gres)
    seen: list[str] = []

    def decided() -> bool:
        state, _, why = cluster.run(["squeue", "-h", "-j", str(asked), "-o", "%T|%r"]).stdout.strip().partition("|")
        seen.append("" if state == "RUNNING" else why)
        return state == "RUNNING" or why not in NO_LIMIT

    wait_until(decided, 30, f"a reason of job {asked}", lambda: f"{case}: {seen}", poll_s=0.2)
    cluster.cancel_jobs()
    if case.set_account:
        cluster.run([*change, "account", "proj1", "set", *CLEAR.split()])
    if case.set_alice:
        cluster.run([*change, "user", "alice", "set", *CLEAR.split()])
    return seen[-1]


def test_reasons_are_squeue_s(make_cluster: ClusterFactory) -> None:
    """A job beside others with the same QOS is held for the reason that slurmctld gives, or starts as there."""
    cluster = make_cluster(Variant(slurm_conf="AccountingStorageEnforce=limits"))
    for number, case in enumerate(CASES):
        assert theirs(cluster, case, f"q{number}") == ours(case) == case.words, case
