"""The machine of a real cluster: what Slurm says of it, what its files say, and what is written and read back."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwaste.cli.main import main
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.site.cluster_model import NEVER, ClusterModel, Node, Outage
from gpuwaste.slurm.site.machine_file import read_machine
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_host import short_name
from gpuwaste.testing.cluster_process import wait_until

pytestmark = pytest.mark.cluster

CONF = """SlurmdTimeout=0
PriorityType=priority/multifactor
PriorityWeightFairshare=1000
PriorityDecayHalfLife=3-0
PriorityCalcPeriod=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=DEFAULT Weight=3 RealMemory=128000
NodeName=fat[1-2,10] CPUs=16 Sockets=2 CoresPerSocket=8 MemSpecLimit=1000 Port=[7001-7003] \\
  NodeHostname={host} NodeAddr=127.0.0.1 Gres=gpu:h100:8,gpu:a100:2 Feature=nvlink,ib # equal
NodeName=smt Boards=1 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=1 RealMemory=1000 Port=7010 \\
  NodeHostname={host} NodeAddr=127.0.0.1
NodeName=kept1 CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=1000 CpuSpecList=0-7 Port=7011 {at}
NodeName=kept2 CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=1000 CoreSpecCount=8 Port=7012 {at}
NodeName=kept3 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0,5 MemSpecLimit=999 RealMemory=1000 \\
  Port=7013 {at}
NodeName=kept4 CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=1 MemSpecLimit=1000 RealMemory=1000 \
  Port=7014 {at}
NodeName=kept5 CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0,1 Port=7015 {at}
NodeName=kept6 CPUs=8 CpuSpecList=0-8 Port=7016 {at}
NodeName=kept7 CPUs=8 CpuSpecList=0-1 CoreSpecCount=3 Port=7017 {at}
NodeName=kept8 CPUs=8 CoreSpecCount=8 Port=7018 {at}
NodeName=odd1 CPUs=16 CoresPerSocket=4 ThreadsPerCore=2 Port=7021 {at}
NodeName=odd2 CPUs=6 CoresPerSocket=4 Port=7022 {at}
NodeName=odd3 CPUs=16 Sockets=2 CoresPerSocket=4 Port=7023 {at}
NodeName=odd5 Boards=2 SocketsPerBoard=2 CoresPerSocket=4 Port=7025 {at}
NodeName=odd6 Boards=2 CoresPerSocket=4 Port=7026 {at}
NodeName=odd7 CPUs=0 Port=7027 {at}
NodeSet=fats Feature=nvlink
PartitionName=DEFAULT PriorityTier=5 MaxTime=1-00:00:00
PartitionName=big Nodes=fats,smt MinNodes=1 MaxNodes=2 PriorityJobFactor=7 AllowAccounts=proj1 PreemptMode=OFF \\
  TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=2.0
PartitionName=late Nodes=gpu1 Default=true MaxTime=60 DefaultTime=90
PartitionName=all Nodes=ALL DefaultTime=90 DenyAccounts=proj2 OverSubscribe=EXCLUSIVE State=INACTIVE
"""


def up(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return nodes whatever happened to them: no slurmd answers for those that are described only."""
    return tuple(replace(node, state="") for node in nodes)


def test_the_files_give_what_slurm_says(
    make_cluster: Callable[[Variant], LoopbackCluster], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nodes, partitions and settings of slurm.conf and gres.conf are scontrol's; --live is written and read back.

    CPUs and memory that slurmd keeps, counts that slurmctld corrects and the second default partition are as there.
    """
    host = short_name()
    conf_lines = CONF.format(host=host, at=f"NodeHostname={host} NodeAddr=127.0.0.1")
    cluster = make_cluster(Variant(slurm_conf=conf_lines))
    for line in (
        "sacctmgr -i add qos high",
        "sacctmgr -i modify qos high set GrpTRES=gres/gpu=6 MaxWall=2:00:00 Preempt=normal",
        "sacctmgr -i modify user alice account=proj1 set fairshare=parent MaxJobs=4",
        "scontrol create reservation reservationname=maint starttime=now+1days duration=60 nodes=gpu1,fat1 users=alice",
    ):
        cluster.run(line.split())
    job = cluster.sbatch("sleep 1", user="bob", gres="gpu:1")
    cluster.wait_job(job, "COMPLETED")
    conf = cluster.env()["SLURM_CONF"]
    live, files = CommandClient(slurm_conf=conf).site(), read_machine(Path(conf).parent)
    assert up(live.nodes) == up(files.nodes)
    for_jobs = {node.name: node.cpus for node in live.nodes}
    assert (for_jobs["smt"], for_jobs["kept1"], for_jobs["kept2"]) == (14, 56, 56)
    assert [each.name for each in live.partitions if each.default] == ["late"]  # of two: gpu is a default, too
    assert live.partitions == files.partitions
    assert live.settings == files.settings
    _accounts(live)
    config = tmp_path / "gpuwaste.toml"
    config.write_text(f'[common]\nslurm_conf = "{conf}"\n')
    written = tmp_path / "machine.toml"
    words = ["simulate", "run", "--config", str(config), "--live", "--write-machine", str(written)]
    assert main(words) == 0
    assert f"{len(live.nodes)} nodes, {live.cpus} CPUs, {live.gpus} GPUs" in capsys.readouterr().out
    log = tmp_path / "log.swf"
    log.write_text("1 0 0 100 3 -1 -1 3 100 -1 1 7 1 -1 1 1 -1 -1\n")  # of a log without a date
    assert main(["simulate", "run", "--config", str(config), "--live", "--swf", str(log), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    cpus = sum(node.cpus for node in live.nodes if not node.down)
    assert (found["processors"], found["processors_from"]) == (cpus, "the live cluster")
    back, now = read_machine(written), CommandClient(slurm_conf=conf).site()
    assert replace(back, nodes=up(back.nodes)) == replace(now, nodes=up(now.nodes))
    # slurmctld gives nodes without a slurmd up one after the other, also between these three looks at them
    looks = [[node.down for node in model.nodes] for model in (live, back, now)]
    assert all(first <= then <= last for first, then, last in zip(*looks, strict=True))


def _accounts(live: ClusterModel) -> None:
    high = next(each for each in live.qos if each.name == "high")
    assert (high.limits.grp_tres, high.limits.max_wall_s, high.preempts) == (
        {"gres/gpu": 6},
        7200,
        frozenset({"normal"}),
    )
    alice = next(each for each in live.associations if each.user == "alice")
    assert (alice.account, alice.parent, alice.shares, alice.limits.max_jobs_per_user) == ("proj1", "proj1", None, 4)
    (maint,) = live.reservations
    assert (maint.nodes, maint.users, maint.end - maint.start) == (("fat1", "gpu1"), frozenset({"alice"}), 3600)


def test_events_of_nodes_are_outages(cluster: LoopbackCluster) -> None:
    """A node that was drained and resumed was down in between, and is not down now."""
    cluster.reset()
    client = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    begun = int(time.time())
    # slurmdbd keeps one event of a node for each second: that of slurmctld's start, where both are in one.
    wait_until(lambda: int(time.time()) > begun, 10, "the next second")
    before = int(time.time())

    def outages() -> list[Outage]:
        return [each for each in client.site(before).outages if each.start >= before]

    cluster.run(["scontrol", "update", "nodename=cpu1", "state=drain", "reason=fan"])
    wait_until(lambda: bool(outages()), 30, "slurmdbd to know that cpu1 is drained")
    assert [each.node for each in outages()] == ["cpu1"]
    cluster.run(["scontrol", "update", "nodename=cpu1", "state=resume"])
    cluster.wait_nodes_idle()
    wait_until(lambda: all(each.end < NEVER for each in outages()), 30, "slurmdbd to know that cpu1 is back")
    assert not any(node.down for node in client.site(before).nodes)
    assert client.rpcs["scontrol"] == 4 * client.rpcs["sshare"] + 1  # the name of the cluster, once
