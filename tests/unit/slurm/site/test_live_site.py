"""A model of the running cluster: what scontrol, sacctmgr and sshare printed of a real one."""

import re
from dataclasses import replace

import pytest
from tests.unit.slurm.site.printed_site import SITE, model, printed

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.slurm.site.cluster_model import Association, LimitSet, Node, Outage, Partition, Qos, Reservation
from gpuwaste.slurm.site.machine_file import read_machine
from gpuwaste.testing.fake_slurm import FakeSlurm

MIB, GIB = 1 << 20, 1 << 30


def test_nodes_are_read_as_printed() -> None:
    """Nodes in slurmctld's order, GPUs by type, memory without what slurmd keeps; a silent or drained node is down."""
    nodes = {node.name: node for node in model().nodes}
    assert list(nodes) == ["cpu1", "fat1", "fat2", "fat3", "gpu1", "gpu2", "plain1"]
    assert nodes["gpu1"] == Node("gpu1", 16, 64000 * MIB, {"a100": 4})
    features = frozenset({"nvlink", "ib"})
    assert nodes["fat2"] == Node("fat2", 16, 127000 * MIB, {"h100": 8, "a100": 2}, features, 10, "DOWN")
    assert nodes["plain1"].gpus == {"": 2}
    assert [name for name, node in nodes.items() if node.down] == ["fat1", "fat2", "fat3", "plain1"]


def test_partitions_are_read_as_printed() -> None:
    """Limits, priority, who may use it, weights of its own; the cluster's preemption is not repeated."""
    gpu, cpu, whole, big = model().partitions
    assert gpu == Partition("gpu", ("gpu1", "gpu2"), default=True, max_time_s=3 * 86400, default_time_s=600)
    assert (cpu.default, cpu.nodes, cpu.preempt_mode) == (False, ("cpu1",), None)
    assert (whole.whole_nodes, gpu.whole_nodes) == (True, False)
    assert big == Partition(
        "big",
        ("cpu1", "fat1", "fat2", "fat3"),
        max_time_s=86400,
        max_nodes=2,
        priority_tier=5,
        priority_job_factor=7,
        preempt_mode="cancel",
        qos="normal",
        allow_accounts=frozenset({"proj1", "proj2"}),
        deny_qos=frozenset({"low"}),
        billing_weights={"cpu": 1.0, "mem": 0.25 / GIB, "gres/gpu": 2.0},
    )


def test_qos_and_associations_are_read_as_printed() -> None:
    """Limits of each kind; the tree of accounts; a user who shares with the account has no shares of their own."""
    found = model()
    high = next(each for each in found.qos if each.name == "high")
    limits = LimitSet(
        grp_tres={"cpu": 64, "gres/gpu": 12, "mem": 100 * GIB},
        grp_jobs=10,
        grp_submit_jobs=20,
        grp_wall_s=86400,
        max_tres_per_job={"gres/gpu": 8},
        max_tres_per_node={"cpu": 8},
        max_tres_per_user={"gres/gpu": 4},
        max_jobs_per_user=3,
        max_submit_per_user=6,
        max_wall_s=43200,
    )
    flags = frozenset({"DenyOnLimit", "OverPartQOS"})
    assert high == Qos("high", 1000, limits, frozenset({"low"}), "cancel", 2.5, flags)
    rows = {(each.account, each.user): each for each in found.associations}
    assert rows["root", ""].parent == ""
    assert (rows["team", ""].parent, rows["team", ""].shares) == ("proj1", 5)
    assert rows["team", "carol"] == Association("team", "carol", "team", shares=None, qos=frozenset({"normal"}))
    alice = rows["proj1", "alice"]
    assert (alice.shares, alice.priority, alice.default_qos, alice.qos) == (
        7,
        30,
        "high",
        frozenset({"high", "normal"}),
    )
    assert (alice.limits.max_tres_per_node, alice.limits.max_wall_s) == ({"mem": 3 * GIB}, 7200)


def test_the_usage_of_an_association_is_sshares() -> None:
    """RawUsage goes to the association of the same account, user and partition."""
    found = model({"usage": printed("usage").replace("proj1|bob||0", "proj1|bob||1234")})
    assert {each.user: each.usage for each in found.associations if each.usage} == {"bob": 1234.0}


def test_reservations_keep_whole_nodes() -> None:
    """One of some cores is left out; one for all but an account is kept for nobody."""
    found = {each.name: each for each in model().reservations}
    assert set(found) == {"maint", "daily", "own"}
    users = frozenset({"alice", "bob"})
    assert found["maint"] == Reservation("maint", ("fat1", "fat2", "gpu1"), 1798761600, 1798768800, users)
    assert (found["daily"].accounts, found["own"].accounts, found["own"].users) == (
        frozenset({"proj2"}),
        frozenset(),
        frozenset(),
    )


def test_outages_are_slurmdbds_events() -> None:
    """A node that is drained until now is down from then on and not before; a start of slurmd is no outage."""
    found = model(events=True)
    assert found.outages == (Outage("fat2", 1795461500, 1 << 40), Outage("fat3", 1795461497, 1 << 40))
    assert [node.name for node in found.nodes if node.down] == ["fat1", "plain1"]


def test_the_files_give_what_scontrol_says() -> None:
    """slurm.conf and gres.conf give the nodes, partitions and settings of scontrol, but for what happened to nodes."""
    live, files = model(), read_machine(SITE)
    assert files.partitions == live.partitions
    assert files.settings == live.settings
    assert [replace(node, state="") for node in files.nodes] == [replace(node, state="") for node in live.nodes]
    assert [node.name for node in files.nodes if node.down] == ["fat3"]


def test_a_client_gives_its_model() -> None:
    """Who asks for the site gets the model, and an error of Slurm is the caller's."""
    assert FakeSlurm(model=model()).site() == model()
    with pytest.raises(GpuwasteError, match="no answer"):
        FakeSlurm(failure="scontrol: no answer").site()


@pytest.mark.parametrize(
    ("what", "good", "bad", "said"),
    [
        ("node", "RealMemory=64000", "RealMemory=much", "node cpu1: RealMemory=much"),
        ("node", "Gres=(null)", "Gres=gpu:a100:4(IDX", "node cpu1: "),
        ("partition", "MaxNodes=UNLIMITED", "MaxNodes=-7", "partition gpu: MaxNodes=-7"),
        (
            "partition",
            "TRESBillingWeights=CPU=",
            "TRESBillingWeights=CPU=x",
            "partition big: cannot read its TRESBillingWeights",
        ),
        ("qos", "cpu=64,gres/gpu=12", "gres/gpu", "QOS high: TRES"),
        ("assoc", "root||||1", f"root||||{'x' * 5000}", "association root : Share="),
        ("reservation", "StartTime=1798761600", "StartTime=tomorrow", "time 'tomorrow'"),
    ],
)
def test_a_damaged_row_is_named(what: str, good: str, bad: str, said: str) -> None:
    """What cannot be read is one line that names its record."""
    text = printed(what)
    assert good in text
    with pytest.raises(ParseError) as error:
        model({what: text.replace(good, bad, 1)})
    assert said in str(error.value)
    assert len(str(error.value)) < 200


def test_a_record_that_is_cut_off_is_an_error() -> None:
    """A node whose record ends early has no memory of 1 MiB."""
    with pytest.raises(ParseError, match="node cpu1: its record is cut off"):
        model({"node": re.sub(r"RealMemory=\d+", "", printed("node"), count=1)})
