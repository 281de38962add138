"""slurm.conf and gres.conf as a machine: defaults, sets, types of GPUs, nodes that are down, and what is wrong."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.slurm.site.cluster_model import ClusterModel
from gpuwaste.slurm.site.machine_file import read_machine

SITE = """ClusterName=alps
NodeName=DEFAULT CPUs=8 RealMemory=1000
NodeName=n[1-3,10] Feature=old
nodename=DEFAULT Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CPUs=16
NodeName=g[1-2] Gres=gpu:4,shard:8 CoreSpecCount=1 MemSpecLimit=200 features=new,fast
NodeName=h1 Gres=gpu:a100:2,gpu:h100 State=DRAIN
NodeName=f[1-9] State=FUTURE
NodeName=cloud[1-2] State=CLOUD
DownNodes=n3 State=FAIL Reason="fan, again"
NodeSet=gpus Feature=fast Nodes=h1
PartitionName=DEFAULT MaxTime=60 PriorityTier=3
PartitionName=a Nodes=ALL Default=YES
PartitionName=b,c Nodes=gpus,n10,f3 MaxTime=UNLIMITED State=DRAIN
PartitionName=d Nodes=n1 Shared=EXCLUSIVE Priority=9 DefaultTime=30 MaxNodes=1 MaxTime=-1
"""


def read(folder: Path, text: str, gres: str = "") -> ClusterModel:
    """Write both files and read the directory."""
    (folder / "slurm.conf").write_text(text)
    (folder / "gres.conf").write_text(gres)
    return read_machine(folder)


def test_nodes(tmp_path: Path) -> None:
    """Defaults of the lines above count; FUTURE nodes are none; names are sorted as slurmctld sorts them."""
    found = {node.name: node for node in read(tmp_path, SITE).nodes}
    assert list(found) == ["cloud1", "cloud2", "g1", "g2", "h1", "n1", "n2", "n3", "n10"]
    assert (found["n1"].cpus, found["n1"].memory_b, found["n1"].features) == (8, 1000 << 20, frozenset({"old"}))
    assert (found["g1"].cpus, found["g1"].memory_b, found["g1"].gpus) == (14, 800 << 20, {"": 4})
    assert found["h1"].gpus == {"a100": 2, "h100": 1}
    assert [name for name, node in found.items() if node.down] == ["h1", "n3"]


def test_types_of_gres_conf(tmp_path: Path) -> None:
    """gres.conf names the types that slurm.conf does not, where it counts as many; lines for one node go first."""
    gres = (
        "Name=gpu Type=a100 File=/dev/nvidia[0-1]\nName=gpu Type=mig File=/dev/nvidia2 Count=2\nName=shard Count=8\n"
        "NodeName=g2 Name=gpu Type=v100 File=/dev/nvidia[0-3]\nNodeName=h1 Name=gpu Type=x Count=3\n"
    )
    found = {node.name: node for node in read(tmp_path, SITE, gres).nodes}
    assert found["g1"].gpus == {"a100": 2, "mig": 2}
    assert found["g2"].gpus == {"v100": 4}
    assert found["h1"].gpus == {"a100": 2, "h100": 1}


def test_partitions(tmp_path: Path) -> None:
    """ALL, sets by feature and by name, several names in a line, the older keys, no limit said in two ways."""
    found = {each.name: each for each in read(tmp_path, SITE).partitions}
    assert (len(found["a"].nodes), found["a"].default, found["a"].max_time_s) == (9, True, 3600)
    assert found["b"].nodes == found["c"].nodes == ("g1", "g2", "h1", "n10")
    assert (found["b"].max_time_s, found["b"].up, found["b"].priority_tier) == (None, False, 3)
    assert (found["d"].whole_nodes, found["d"].priority_job_factor, found["d"].default_time_s) == (True, 9, 1800)
    assert (found["d"].max_time_s, found["d"].max_nodes) == (None, 1)


def test_settings_are_as_scontrol_prints_them(tmp_path: Path) -> None:
    """Units, case and defaults are scontrol's; what decides no start is left out."""
    found = read(
        tmp_path,
        SITE + "PriorityType=priority/multifactor\nprioritydecayhalflife=14-0\nPriorityMaxAge=90\nKillWait=5\n"
        "PriorityFavorSmall=YES\nDefMemPerCPU=500\nSelectType=select/linear\nSlurmUser=slurm\n",
    )
    wanted = {
        "PriorityDecayHalfLife": "14-00:00:00",
        "PriorityMaxAge": "01:30:00",
        "KillWait": "5 sec",
        "PriorityFavorSmall": "Yes",
        "DefMemPerCPU": "500",
        "PriorityWeightAge": "0",
        "SchedulerType": "sched/backfill",
    }
    assert {name: found.settings.get(name) for name in wanted} == wanted
    assert not {"SlurmUser", "DefMemPerNode", "NodeName"} & set(found.settings)
    assert all(each.whole_nodes for each in found.partitions)
    assert [name for name in read(tmp_path, SITE).settings if name.startswith("Priority")] == ["PriorityType"]


@pytest.mark.parametrize("name", ["site.conf", "site"])
def test_a_file_of_another_name_is_known_by_its_lines(tmp_path: Path, name: str) -> None:
    """slurm.conf may have any name; only a gres.conf beside it counts."""
    (tmp_path / name).write_text(SITE)
    assert read_machine(tmp_path / name).name == "alps"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PartitionName=p Nodes=ALL\n", "slurm.conf: no nodes"),
        ("NodeName=a\n", "slurm.conf: no partitions"),
        ("NodeName=a\nNodeName=b CPUs=x\n", "slurm.conf line 2: CPUs=x: expected a whole number"),
        ("NodeName=a[1-\n", "slurm.conf line 1: 'a[1-'"),
        ("NodeName=a[0-99999]\n", "slurm.conf line 1: hostlist"),
        ("NodeName=a\nNodeName=a\nPartitionName=p Nodes=a\n", "slurm.conf line 2: node a: described twice"),
        ("NodeName=a Gres=gpu:((\n", "slurm.conf line 1: "),
        ("NodeName=a\n\nPartitionName=p Nodes=a,b\n", "slurm.conf line 3: partition p: no node b is described"),
        ("NodeName=a\nPartitionName=p\n", "slurm.conf line 2: partition p: no nodes"),
        ("NodeName=a\nPartitionName=p Nodes=a MaxTime=0\n", "slurm.conf line 2: partition p: MaxTime of 0 s"),
        ("NodeName=a\nPartitionName=p Nodes=a MaxTime=soon\n", "slurm.conf line 2: duration 'soon'"),
        ("NodeName=a\nPartitionName=p Nodes=a MaxNodes=0\n", "slurm.conf line 2: partition p: MaxNodes 0"),
        ("NodeName=a CPUs=1 CoreSpecCount=1\n", "slurm.conf line 1: CoreSpecCount=1: leaves no CPU"),
        ("KillWait=never\nNodeName=a\n", "slurm.conf line 1: KillWait=never: expected a whole number"),
        pytest.param(
            "".join(f"NodeName=a{n}x[1-65000]\n" for n in range(9)), "more than 200000 nodes", marks=pytest.mark.long
        ),
        pytest.param(
            "NodeName=a[1-65000]\n" + "PartitionName=p Nodes=a[1-65000]\n" * 70,
            "more than 4000000 names",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    """One line with the file, its line and what is wrong."""
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bad_line_of_gres_conf_is_named(tmp_path: Path) -> None:
    """The other file's name and line."""
    with pytest.raises(ConfigError, match=r"gres.conf line 2: Count=many"):
        read(tmp_path, SITE, "\nName=gpu Count=many\n")


@pytest.mark.parametrize(
    ("words", "cpus"),
    [  # each as `scontrol show node` of slurmctld 22.05 prints CPUEfctv: tests/contract/test_machine_contract.py
        ("CPUs=64 Sockets=2 CoresPerSocket=32 CpuSpecList=0-7", 56),
        ("CPUs=64 Sockets=2 CoresPerSocket=32 CoreSpecCount=8", 56),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0,5", 12),  # both threads of each core
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0-3", 12),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=2", 12),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=1", 7),  # a CPU is a core
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0,1", 6),
        ("CPUs=8 CpuSpecList=0-8", 8),  # beyond the CPUs: slurmctld ignores the list
        ("CPUs=8 CpuSpecList=0-1 CoreSpecCount=3", 6),  # the list counts
        ("CPUs=8 CoreSpecCount=8", 7),  # all cores: slurmctld takes 1
        ("CPUs=16 CoresPerSocket=4 ThreadsPerCore=2", 16),  # two sockets
        ("CPUs=6 CoresPerSocket=4", 4),  # matches no sockets: one of them
        ("CPUs=16 Sockets=2 CoresPerSocket=4", 8),  # more than there can be
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 16),
        ("Boards=2 CoresPerSocket=4", 8),
        ("CPUs=0", 1),
    ],
)
def test_cpus_for_jobs_are_counted_as_slurmctld_counts_them(tmp_path: Path, words: str, cpus: int) -> None:
    """Cores that slurmd keeps are no jobs' cores, in whichever way they are named; wrong counts are corrected."""
    assert [node.cpus for node in read(tmp_path, f"NodeName=a {words}\nPartitionName=p Nodes=a\n").nodes] == [cpus]


@pytest.mark.parametrize(("limit", "memory"), [(400, 600), (999, 1), (1000, 1000), (5000, 1000)])
def test_memory_for_jobs(tmp_path: Path, limit: int, memory: int) -> None:
    """What slurmd keeps is no jobs' memory; a limit of all memory and more is none for slurmctld."""
    (node,) = read(tmp_path, f"NodeName=a RealMemory=1000 MemSpecLimit={limit}\nPartitionName=p Nodes=a\n").nodes
    assert node.memory_b == memory << 20


@pytest.mark.parametrize("text", ["9" * 400, "0-" + "9" * 18, "[0-7]", "0-7:2", ",", "0" * 100_000, "a" * 100_000])
def test_any_list_of_cpus_is_bounded(tmp_path: Path, text: str) -> None:
    """Whatever a CpuSpecList holds, the node has between 1 and all of its CPUs."""
    (node,) = read(tmp_path, f"NodeName=a CPUs=8 CpuSpecList={text}\nPartitionName=p Nodes=a\n").nodes
    assert 1 <= node.cpus <= 8


def test_of_several_default_partitions_the_last_one_counts(tmp_path: Path) -> None:
    """As slurmctld logs "changing default partition from a to b"; a Default in the DEFAULT line is one, too."""
    conf = "NodeName=n[1-2]\nPartitionName=a Nodes=n1 Default=YES\nPartitionName=b Nodes=n2 Default=true\n"
    found = read(tmp_path, conf + "PartitionName=c Nodes=n2\n")
    assert [each.default for each in found.partitions] == [False, True, False]
    assert found.default_partition().name == "b"
    found = read(tmp_path, "NodeName=n\nPartitionName=DEFAULT Default=1 Nodes=n\nPartitionName=a,b\nPartitionName=c\n")
    assert found.default_partition().name == "c"


def test_a_default_time_above_the_most_is_none(tmp_path: Path) -> None:
    """As in slurmctld, which drops a DefaultTime above MaxTime: jobs without a limit get MaxTime."""
    found = read(tmp_path, "NodeName=n\nPartitionName=a Nodes=n MaxTime=60 DefaultTime=90\n").partitions
    assert [(each.default_time_s, each.max_time_s) for each in found] == [(None, 3600)]
