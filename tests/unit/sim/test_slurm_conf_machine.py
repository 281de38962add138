"""slurm.conf and gres.conf as a machine: defaults, sets, types of GPUs, nodes that are down, and what is wrong."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.sim.cluster import ClusterModel
from gpuwaste.sim.clusters.reading import read_machine

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
        ("NodeName=a\nNodeName=b CPUs=0\nPartitionName=p Nodes=a\n", "slurm.conf line 2: node b: 0 CPUs"),
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
