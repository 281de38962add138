"""Configuration, partitions with their rules, and nodes."""

import pytest
from tests.unit.plan.facts import PARTITIONS as RULES

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.accounting.tres_amounts import billing
from gpuwaste.slurm.site.site_defaults import whole_node_partitions
from gpuwaste.slurm.site.site_fields import parse_config, parse_nodes, parse_partitions

CONFIG = """Configuration data as of 1700000000
ClusterName             = gw
PrivateData             = jobs,usage
SelectType              = select/cons_tres
SlurmdSpoolDir          = /var/spool/%h/%n%%
SLURM_VERSION           = 22.05.8
TaskEpilog              = (null)

Cgroup Support Configuration:
ConstrainDevices        = yes

Slurmctld(primary) at vm is UP
"""
PARTITIONS = """PartitionName=whole
   AllowGroups=ALL AllocNodes=ALL Default=NO QoS=N/A
   MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0
   Nodes=gpu[1-2]
   PriorityJobFactor=1 PriorityTier=10 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE
   State=UP TotalCPUs=32

PartitionName=gpu Default=YES MaxTime=UNLIMITED Nodes=(null) PriorityTier=1 OverSubscribe=NO State=DOWN
"""
NODE = """NodeName=gpu1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=16 CPUTot=18 CPULoad=0.00
   AvailableFeatures=(null)
   Gres=gpu:a100:3,gpu:v100:1,shard:8
   GresUsed=gpu:a100:2(IDX:2-3),gpu:v100:0(IDX:N/A)
   NodeAddr=127.0.0.1 NodeHostName=vm Port=17001 Version=22.05.8
   OS=Linux 6.1 #1 SMP
   RealMemory=64000 AllocMem=0 MemSpecLimit=2000
   State=MIXED+DRAIN ThreadsPerCore=1
   Partitions=gpu,whole
   Reason=NodeHostName=evil Gres=gpu:99 [root@2023-11-14T22:13:20]

"""


def test_reads_the_configuration() -> None:
    """The settings that we use, and the spool directory of one node."""
    config = parse_config(CONFIG)
    assert (config.cluster_name, config.version, config.linear) == ("gw", "22.05.8", False)
    assert config.private_data == {"jobs", "usage"}
    assert config.spool_dir("gpu1", "vm") == "/var/spool/vm/gpu1%"
    assert config.settings["TaskEpilog"] == ""
    assert parse_config("ClusterName = x\nPrivateData = none\n").private_data == frozenset()


def test_a_configuration_without_a_cluster_is_none() -> None:
    """An error message is no configuration."""
    with pytest.raises(ParseError, match="ClusterName"):
        parse_config("slurm_load_ctl_conf error")


def test_reads_partitions() -> None:
    """Whole-node partitions are told from the others."""
    whole, gpu = parse_partitions(PARTITIONS)
    assert (whole.name, whole.whole_nodes, whole.nodes, whole.max_time_s) == ("whole", True, ("gpu1", "gpu2"), 86400)
    assert (gpu.whole_nodes, gpu.nodes, gpu.max_time_s, gpu.default, gpu.state) == (False, (), None, True, "DOWN")


def test_select_linear_gives_whole_nodes_in_every_partition() -> None:
    """Whole nodes come with the partition's OverSubscribe=EXCLUSIVE, or everywhere with select/linear."""
    partitions = parse_partitions(PARTITIONS)
    assert whole_node_partitions(partitions, parse_config(CONFIG)) == {"whole"}
    linear = parse_config(CONFIG.replace("select/cons_tres", "select/linear"))
    assert whole_node_partitions(partitions, linear) == {"whole", "gpu"}


def test_reads_nodes() -> None:
    """A reason cannot overwrite a field."""
    (node,) = parse_nodes(NODE)
    assert (node.name, node.hostname, node.address, node.version) == ("gpu1", "vm", "127.0.0.1", "22.05.8")
    assert (node.gpus, node.gpu_count, node.cpus, node.memory_b) == ({"a100": 3, "v100": 1}, 4, 16, 62000 << 20)
    assert node.partitions == ("gpu", "whole")
    assert (node.state, node.down) == ("MIXED+DRAIN", True)


@pytest.mark.parametrize("cut", ["PriorityJobFactor", "Gres=", "RealMemory=", "State=MIXED"])
def test_a_record_that_is_cut_off_is_an_error(cut: str) -> None:
    """What decides is missing, so nothing is assumed."""
    with pytest.raises(ParseError, match="cut off"):
        parse_partitions(PARTITIONS.split(cut, maxsplit=1)[0]) + parse_nodes(NODE.split(cut, maxsplit=1)[0])


def test_a_site_without_partitions_or_nodes_has_none() -> None:
    """What scontrol prints where there is nothing, or nothing that begins as a record does, is an empty list."""
    for text in ("", "No partitions in the system\n", "PartitionName=\n", "NodeName= \n"):
        assert parse_partitions(text) == []
        assert parse_nodes(text) == []


@pytest.mark.parametrize(("word", "whole"), [("NODE", True), ("TOPO", True), ("USER", False), ("NO", False)])
def test_exclusive_of_later_releases_gives_whole_nodes(word: str, *, whole: bool) -> None:
    """Slurm 26.05 prints OverSubscribe=NO for a partition of whole nodes, and Exclusive=NODE."""
    text = PARTITIONS.replace("OverSubscribe=EXCLUSIVE", f"OverSubscribe=NO Exclusive={word}")
    assert {one.name: one.whole_nodes for one in parse_partitions(text)} == {"whole": whole, "gpu": False}


def test_rules_of_each_partition() -> None:
    """ALL and UNLIMITED are no rule."""
    gpu, big, staff = parse_partitions(RULES)
    assert (gpu.allow_accounts, gpu.max_nodes) == (frozenset(), 2)
    assert staff.allow_accounts == {"proj2"}
    assert staff.deny_qos == {"high"}
    assert (big.max_nodes, big.qos, big.allow_groups) == (None, "", frozenset())


def test_no_nodes_are_a_limit_too() -> None:
    """MaxNodes=0 closes a partition to every job; a number that no Slurm prints is an error that names it."""
    text = "PartitionName=p\n   MaxNodes=0 OverSubscribe=NO\n"
    assert parse_partitions(text)[0].max_nodes == 0
    with pytest.raises(ParseError, match="partition p: MaxNodes=999"):
        parse_partitions(text.replace("=0", "=" + "9" * 5000))


@pytest.mark.parametrize(
    ("weights", "tres", "plain", "largest"),
    [
        ("CPU=1.0,Mem=0.25G,GRES/gpu=16.0", {"cpu": 4, "mem": 32 << 30, "gres/gpu": 2}, 44.0, 32.0),
        ("CPU=0.5", {"cpu": 4, "gres/gpu": 2}, 2.0, 2.0),
        ("", {"cpu": 4, "gres/gpu": 2}, 4.0, 4.0),
        ("Mem=1024", {"mem": 1 << 20}, 1024.0, 1024.0),
    ],
)
def test_billing_weighs_each_resource(weights: str, tres: dict[str, int], plain: float, largest: float) -> None:
    """The sum of weight times amount, or the largest of them (MAX_TRES); without weights the CPUs."""
    text = f"PartitionName=p\n   OverSubscribe=NO\n   TRESBillingWeights={weights}\n"
    (partition,) = parse_partitions(text)
    assert partition.billing_weights is not None
    assert billing(partition.billing_weights, tres) == pytest.approx(plain)
    assert billing(partition.billing_weights, tres, largest=True) == pytest.approx(largest)
