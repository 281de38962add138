"""Limits in several places against a real slurmctld: plan names a problem where Slurm holds or refuses the job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from tests.conftest import ClusterFactory

from gpuwaste.core.groups import unix_groups
from gpuwaste.plan.builder import _asked
from gpuwaste.plan.plan_request import PlannedSubmission
from gpuwaste.plan.request_limits import problems
from gpuwaste.plan.user_site import read_site
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
SCRIPT = "#!/bin/bash\n#SBATCH --mem=10M --output=/dev/null\nsleep 600\n"
NO_LIMIT = frozenset({"None", "Resources", "Priority", "Prolog"})
CLEAR = (
    "grptres=cpu=-1,gres/gpu=-1 grpjobs=-1 grpsubmit=-1 maxjobs=-1 maxsubmit=-1 maxwall=-1 maxtres=cpu=-1,gres/gpu=-1"
)
WIDE = "maxwall=30 maxtres=gres/gpu=4"
NARROW = "maxwall=10 maxtres=gres/gpu=1"


@dataclass(frozen=True)
class Case:
    """What slurmctld does with a job, what it asks for, and the limits of its QOS, its partition's, proj1 and alice."""

    seen: str
    options: Mapping[str, str] = field(default_factory=dict)
    qos: str = ""
    part: str = ""
    account: str = ""
    alice: str = ""
    of_job: bool = True
    waiting: bool = False


CASES = (
    Case("RUNNING", {"time": "20", "gres": "gpu:2"}, WIDE, alice=NARROW),
    Case("AssocMaxWallDurationPerJobLimit", {"time": "20", "gres": "gpu:1"}, WIDE, alice=NARROW, of_job=False),
    Case("AssocMaxGRESPerJob", {"time": "5", "gres": "gpu:2"}, WIDE, alice=NARROW, of_job=False),
    Case("AssocMaxGRESPerJob", {"time": "20", "gres": "gpu:2"}, "maxwall=30", alice=NARROW),
    Case("QOSMaxWallDurationPerJobLimit", {"time": "20"}, WIDE, "maxwall=5", alice=NARROW),
    Case("RUNNING", {"time": "20", "gres": "gpu:2"}, f"{WIDE} flags=OverPartQOS", "maxwall=5", alice=NARROW),
    Case("QOSMaxGRESPerJob", {"time": "20", "gres": "gpu:2"}, "maxwall=30 flags=OverPartQOS",
         "maxwall=5 maxtres=gres/gpu=1"),
    Case("refused", {"time": "40"}, f"{WIDE} flags=DenyOnLimit"),
    Case("RUNNING", {"time": "20", "gres": "gpu:2"}, f"{WIDE} flags=DenyOnLimit", alice=NARROW),
    Case("RUNNING", {"time": "8"}, account="maxwall=3", alice="maxwall=10"),
    Case("AssocMaxWallDurationPerJobLimit", {"time": "8"}, account="maxwall=3"),
    Case("RUNNING", {"time": "8", "gres": "gpu:2"}, "grptres=gres/gpu=4", account="grptres=gres/gpu=1"),
    Case("AssocGrpGRES", {"time": "8", "gres": "gpu:2"}, account="grptres=gres/gpu=1"),
    Case("RUNNING", {"time": "8", "nodes": "2", "ntasks": "5"}, "maxtrespernode=cpu=2"),
    Case("QOSMaxCpuPerNode", {"time": "8", "nodes": "2", "ntasks": "6"}, "maxtrespernode=cpu=2"),
    Case("RUNNING", {"time": "8"}, "maxsubmitjobsperuser=9", alice="maxsubmit=1", waiting=True),
    Case("refused", {"time": "8"}, alice="maxsubmit=1", waiting=True),
    Case("refused", {"time": "8"}, "grpsubmit=1", account="grpsubmit=9", waiting=True),
    Case("RUNNING", {"time": "8"}, "grpsubmit=9", account="grpsubmit=1", waiting=True),
)  # fmt: skip


class Shown:
    """Slurm's commands as alice runs them."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self.cluster = cluster

    def text(self, *argv: str) -> str:
        """Return what one prints."""
        return self.cluster.run(list(argv), "alice").stdout


@pytest.fixture
def cluster(make_cluster: ClusterFactory) -> Iterator[LoopbackCluster]:
    """Give a cluster that enforces limits."""
    made = make_cluster(Variant(slurm_conf="AccountingStorageEnforce=associations,limits,qos"))
    yield made
    made.cancel_jobs()


def words_of(case: Case, qos: str) -> list[str]:
    """Return sbatch's options of the job; its QOS is that with limits, or `normal`."""
    return [*(f"--{name}={value}" for name, value in case.options.items()), f"--qos={qos if case.of_job else 'normal'}"]


def ours(cluster: LoopbackCluster, case: Case, qos: str) -> list[str]:
    """Return the problems that plan finds, with what alice may ask Slurm."""
    uid = int(cluster.run(["id", "-u"], "alice").stdout)
    site = read_site(Shown(cluster), "alice", uid, unix_groups("alice"))
    assert site.notes == ()
    submission = PlannedSubmission((*words_of(case, qos), "job.sh"), SCRIPT.encode(), {}, "alice", 1_800_000_000)
    ((request, options),) = submission.read()
    return problems(_asked(request, site, options))


def theirs(cluster: LoopbackCluster, case: Case, qos: str) -> str:
    """Return what slurmctld does with the job: "refused", "RUNNING", or the reason why it waits."""
    script = cluster.directory / "home" / "alice" / "job.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    done = cluster.run(["sbatch", "--parsable", *words_of(case, qos), str(script)], "alice", check=False)
    if done.returncode:
        return "refused"
    seen: list[str] = []

    def decided() -> bool:
        state, _, why = cluster.run(["squeue", "-h", "-j", done.stdout.strip(), "-o", "%T|%r"]).stdout.partition("|")
        seen.append(state if state == "RUNNING" else why.strip())
        return seen[-1] not in NO_LIMIT

    wait_until(decided, 30, f"a reason of job {done.stdout}", lambda: f"{case}: {seen}", poll_s=0.2)
    return seen[-1]


def test_a_partition_of_no_nodes_starts_nothing(cluster: LoopbackCluster) -> None:
    """MaxNodes=0 is a limit for slurmctld, and plan names it."""
    cluster.run(["scontrol", "update", "PartitionName=gpu", "MaxNodes=0"])
    case = Case("PartitionConfig", {"time": "5"}, of_job=False)
    assert theirs(cluster, case, "") in {"PartitionConfig", "PartitionNodeLimit", "refused"}
    assert ours(cluster, case, "") == ["partition gpu: at most 0 nodes for a job"]


def test_plan_finds_a_problem_where_slurm_does(cluster: LoopbackCluster) -> None:
    """The first limit of the hierarchy decides: partition's QOS, job's QOS, association, accounts; also OverPartQOS."""
    change = ["sacctmgr", "-i", "modify"]
    for number, case in enumerate(CASES):
        qos, part = f"q{number}", f"p{number}"
        for name, limits in ((qos, case.qos), (part, case.part)):
            cluster.run(["sacctmgr", "-i", "add", "qos", name, *(["set", *limits.split()] if limits else [])])
        cluster.run([*change, "account", "root", "set", f"qos+={qos},{part}"])
        cluster.run([*change, "account", "proj1", "set", *CLEAR.split()])
        cluster.run([*change, "user", "alice", "set", *CLEAR.split()])
        if case.account:
            cluster.run([*change, "account", "proj1", "set", *case.account.split()])
        if case.alice:
            cluster.run([*change, "user", "alice", "set", *case.alice.split()])
        if case.part:
            cluster.run(["scontrol", "update", "PartitionName=gpu", f"QoS={part}"])
        if case.waiting:
            held = ["sbatch", "--parsable", "--hold", *words_of(case, qos), "--wrap", "true"]
            cluster.run([word for word in held if word], "alice")
        found, seen = ours(cluster, case, qos), theirs(cluster, case, qos)
        assert (seen, bool(found)) == (case.seen, case.seen != "RUNNING"), (case, found)
        cluster.cancel_jobs()
        cluster.run(["scontrol", "update", "PartitionName=gpu", "QoS="])
