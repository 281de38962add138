"""A model of the running cluster: what scontrol, sacctmgr and sshare printed of a real one."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.sim.site import SITE, tables

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.sim.cluster import Association, Limits, Node, Outage, Partition, Qos, Reservation
from gpuwaste.sim.clusters.live import live_machine, model_of
from gpuwaste.sim.clusters.reading import read_machine
from gpuwaste.testing.fake_slurm import FakeSlurm

MIB, GIB = 1 << 20, 1 << 30


def test_nodes_are_read_as_printed() -> None:
    """Nodes in slurmctld's order, GPUs by type, memory without what slurmd keeps; a silent or drained node is down."""
    nodes = {node.name: node for node in model_of(tables()).nodes}
    assert list(nodes) == ["cpu1", "fat1", "fat2", "fat3", "gpu1", "gpu2", "plain1"]
    assert nodes["gpu1"] == Node("gpu1", 16, 64000 * MIB, {"a100": 4})
    features = frozenset({"nvlink", "ib"})
    assert nodes["fat2"] == Node("fat2", 16, 127000 * MIB, {"h100": 8, "a100": 2}, features, 10, down=True)
    assert nodes["plain1"].gpus == {"": 2}
    assert [name for name, node in nodes.items() if node.down] == ["fat1", "fat2", "fat3", "plain1"]


def test_partitions_are_read_as_printed() -> None:
    """Limits, priority, who may use it, weights of its own; the cluster's preemption is not repeated."""
    gpu, cpu, whole, big = model_of(tables()).partitions
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
    found = model_of(tables())
    high = next(each for each in found.qos if each.name == "high")
    limits = Limits(
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
    site = tables()
    used = tuple({**row, "RawUsage": "1234"} if row["User"] == "bob" else row for row in site.usage)
    found = model_of(replace(site, usage=used))
    assert {each.user: each.usage for each in found.associations if each.usage} == {"bob": 1234.0}


def test_reservations_keep_whole_nodes() -> None:
    """One of some cores is left out; one for all but an account is kept for nobody."""
    found = {each.name: each for each in model_of(tables()).reservations}
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
    found = model_of(tables(events=True))
    assert found.outages == (Outage("fat2", 1795461500, 1 << 40), Outage("fat3", 1795461497, 1 << 40))
    assert [node.name for node in found.nodes if node.down] == ["fat1", "plain1"]


def test_the_files_give_what_scontrol_says() -> None:
    """slurm.conf and gres.conf give the nodes, partitions and settings of scontrol, but for what happened to nodes."""
    live, files = model_of(tables()), read_machine(SITE)
    assert files.partitions == live.partitions
    assert files.settings == live.settings
    assert [replace(node, down=False) for node in files.nodes] == [replace(node, down=False) for node in live.nodes]
    assert [node.name for node in files.nodes if node.down] == ["fat3"]


def test_a_client_gives_its_tables() -> None:
    """live_machine asks once, and an error of Slurm is the caller's."""
    assert live_machine(FakeSlurm(tables=tables())) == model_of(tables())
    with pytest.raises(GpuwasteError, match="no answer"):
        live_machine(FakeSlurm(failure="scontrol: no answer"))


@pytest.mark.parametrize(
    ("kind", "column", "value", "said"),
    [
        ("nodes", "RealMemory", "much", "node cpu1: RealMemory=much"),
        ("nodes", "Gres", "gpu:a100:4(IDX", "node cpu1: "),
        ("partitions", "MaxNodes", "-7", "MaxNodes=-7"),
        ("qos", "GrpTRES", "gres/gpu", "QOS normal: TRES"),
        ("associations", "Share", "x" * 5000, "association root : Share="),
        ("reservations", "StartTime", "tomorrow", "time 'tomorrow'"),
    ],
)
def test_a_damaged_row_is_named(kind: str, column: str, value: str, said: str) -> None:
    """What cannot be read is one line that names its record."""
    site = tables()
    first, *others = getattr(site, kind)
    changed: dict[str, Any] = {kind: ({**first, column: value}, *others)}
    with pytest.raises(ParseError) as error:
        model_of(replace(site, **changed))
    assert said in str(error.value)
    assert len(str(error.value)) < 200


def test_a_record_that_is_cut_off_is_an_error() -> None:
    """A node whose record ends early has no memory of 1 MiB."""
    site = tables()
    cut = {key: value for key, value in site.nodes[0].items() if key != "RealMemory"}
    with pytest.raises(ParseError, match="cut off"):
        model_of(replace(site, nodes=(cut, *site.nodes[1:])))
