"""slurm.conf and gres.conf of a cluster model: what stands there, and what cannot."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.sim.real.conf import MAX_NODES, Place, cgroup_conf, cred_expire_s, gpu_files, gres_conf, slurm_conf
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Outage, Partition

GIB = 1 << 30
PLACE = Place(Path("/x"), "alice", 15000, (15001, 15002))
NODES = (Node("g1", 8, 64 * GIB, {"a100": 2, "v100": 1}, frozenset({"ib", "big"}), 5), Node("c1", 4, GIB, state="DOWN"))


def model(**more: object) -> ClusterModel:
    partition = Partition("gpu", ("g1", "c1"), default=True, max_time_s=3601, default_time_s=60, priority_tier=3)
    return ClusterModel(**{"name": "t", "nodes": NODES, "partitions": (partition,), **more})  # type: ignore[arg-type]


def keys(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_nodes_and_partitions_stand_as_slurm_writes_them() -> None:
    """Memory is in MiB, times in minutes rounded up, GPUs by type, a node that is down is down."""
    text = slurm_conf(model(), PLACE, 20, jobs=10, memory=True)
    assert (
        "NodeName=g1 NodeHostName=localhost NodeAddr=127.0.0.1 Port=15001 CPUs=8 RealMemory=65536 Weight=5"
        " Gres=gpu:a100:2,gpu:v100:1 Feature=big,ib State=UNKNOWN"
    ) in text.splitlines()
    assert "Port=15002 CPUs=4 RealMemory=1024 Weight=1 State=DOWN" in text
    assert (
        "PartitionName=gpu Nodes=g1,c1 Default=YES State=UP MaxTime=61 MinNodes=1 PriorityTier=3 PriorityJobFactor=1"
        " OverSubscribe=NO DefaultTime=1"
    ) in text.splitlines()
    assert keys(text)["SelectTypeParameters"] == "CR_CPU_Memory"
    assert keys(text)["SlurmUser"] == "alice"


def test_gpus_are_files_that_all_nodes_share() -> None:
    """Types of one node have files of their own; as many files are needed as the largest node has GPUs."""
    lines = gres_conf(model(), PLACE).splitlines()
    assert lines == [
        "AutoDetect=off",
        "NodeName=g1 Name=gpu Type=a100 File=/x/gpu/[0-1]",
        "NodeName=g1 Name=gpu Type=v100 File=/x/gpu/[2-2]",
    ]
    assert gpu_files(model()) == 3


def test_settings_of_the_site_are_taken_and_computing_gets_time() -> None:
    """Units of scontrol go, intervals stay, bounds of computing grow with the speed, limits by user go."""
    settings = {
        "schedulerparameters": "bf_interval=60,bf_continue,bf_max_job_user=4,max_sched_time=4",
        "KillWait": "30 sec",
        "DefMemPerNode": "UNLIMITED",
        "PriorityType": "priority/multifactor",
        "PriorityWeightAge": "1000",
        "PriorityWeightFairshare": "5000",
        "SlurmUser": "root",
    }
    found = keys(slurm_conf(model(settings=settings), PLACE, 20, jobs=10, memory=False))
    assert found["SchedulerParameters"] == (
        "bf_interval=60,bf_continue,max_sched_time=80,bf_max_time=1200,bf_yield_interval=10000000"
    )
    assert found["KillWait"] == "30"
    assert "DefMemPerNode" not in found
    assert (found["PriorityWeightAge"], found["PriorityWeightFairshare"]) == ("1000", "0")
    assert found["SlurmUser"] == "alice"  # never the site's


def test_credentials_hold_long_only_where_nothing_is_requeued() -> None:
    """A requeued job waits until its credential expires: 120 s stay where nodes fail or jobs are preempted."""
    assert cred_expire_s(model(), 20) == 600
    assert cred_expire_s(model(outages=(Outage("g1", 0, 10),)), 20) == 120
    assert cred_expire_s(model(settings={"PreemptType": "preempt/partition_prio"}), 20) == 120


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"settings": {"KillWait": "30\nSlurmUser=root"}}, "KillWait"),
        ({"settings": {"SchedulerParameters": "x" * 5000}}, "SchedulerParameters"),
        ({"nodes": (Node("a b", 1, GIB), NODES[1])}, "node name 'a b'"),
        ({"nodes": (Node("g1", 1, GIB, {"x=1": 1}), NODES[1])}, "GPU type 'x=1'"),
        ({"partitions": (Partition("p\nInclude=/etc/shadow", ("g1",)),)}, "partition name"),
        ({"nodes": ()}, "0 nodes"),
        ({"nodes": tuple(Node(f"n{i}", 1, GIB) for i in range(MAX_NODES + 1))}, f"1 to {MAX_NODES}"),
    ],
)
def test_what_slurm_conf_cannot_have_is_named(more: dict[str, object], said: str) -> None:
    """A name or value that would be another line of slurm.conf, and a cluster too large for a host, are one error."""
    with pytest.raises(ConfigError, match=said):
        slurm_conf(model(**more), PLACE, 20, jobs=1, memory=False)


def test_cgroups_are_off_as_each_release_says_it() -> None:
    """Releases before 24.05 do not know the plugin `disabled`."""
    assert "CgroupPlugin=cgroup/v1" in cgroup_conf("22.05.8")
    assert "CgroupPlugin=cgroup/v1" in cgroup_conf("23.11.10")
    assert "CgroupPlugin=disabled" in cgroup_conf("24.11.5")
