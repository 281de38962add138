"""Who may use a partition, and what its resources are billed."""

import pytest
from tests.unit.plan.facts import PARTITIONS

from gpuwaste.sim.clusters.hardware import partition_of
from gpuwaste.slurm.site.partition_rules import parse_rules
from gpuwaste.slurm.site.tres_weights import billing


def test_rules_of_each_partition() -> None:
    """ALL and UNLIMITED are no rule."""
    rules = parse_rules(PARTITIONS)
    assert (rules["gpu"].allow_accounts, rules["gpu"].max_nodes) == (frozenset(), 2)
    assert rules["staff"].allow_accounts == {"proj2"}
    assert rules["staff"].deny_qos == {"high"}
    assert (rules["big"].max_nodes, rules["big"].qos) == (None, "")


def test_no_nodes_are_a_limit_too() -> None:
    """MaxNodes=0 closes a partition to every job, in plans as in the simulator's model."""
    text = "PartitionName=p\n   MaxNodes=0 OverSubscribe=NO\n"
    assert parse_rules(text)["p"].max_nodes == 0
    assert partition_of({"partitionname": "p", "maxnodes": "0"}, (), {}).max_nodes == 0
    assert parse_rules(text.replace("=0", "=" + "9" * 5000))["p"].max_nodes is None


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
    rules = parse_rules(text)["p"]
    assert rules.billing is not None
    assert billing(rules.billing, tres) == pytest.approx(plain)
    assert billing(rules.billing, tres, largest=True) == pytest.approx(largest)
