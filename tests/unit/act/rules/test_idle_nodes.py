"""The fact of idle nodes: which nodes a running job could give back, and for how long all of them have been idle."""

import pytest

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.rules.rule_facts import facts_of, filled, widest
from gpuwaste.act.rules.rule_moments import gpu_state
from gpuwaste.ledger.held_gpus import HeldGpu, NowLevel

FACT = "{ledger.idle_nodes}"


def gpu(node: str, idle_s: int, level: NowLevel = "idle") -> HeldGpu:
    """Return a GPU that was active some seconds ago."""
    return HeldGpu(
        node=node, gpu_uuid=f"GPU-{node}-{idle_s}", first_ms=0, seen_ms=10_000_000,
        last_active_ms=10_000_000 - idle_s * 1000, mean_pct=0.0, wasted_ms=0, exempt_ms=0, coverage=1.0, hang_ms=0,
        cpu_cores=1.0, level=level,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("held", "nodes", "seconds"),
    [
        ([gpu("a", 4000), gpu("b", 5000)], "a,b", 4000.0),
        ([gpu("a", 4000), gpu("a", 30, "high"), gpu("b", 5000)], "b", 5000.0),
        ([gpu("a", 4000), gpu("b", 599)], "a", 4000.0),
        ([gpu("a", 600), gpu("a", 9000)], "a", 600.0),
        ([gpu("a", 0, "high"), gpu("b", 100)], "none", 0.0),
        ([gpu("", 9000)], "none", 0.0),
    ],
    ids=["shortest", "one GPU works", "just idle", "two GPUs", "none", "no name"],
)
def test_a_node_is_idle_if_all_gpus_of_the_run_on_it_are(held: list[HeldGpu], nodes: str, seconds: float) -> None:
    """For ten minutes and more; the time is the shortest, so that every node was idle for as long as a rule asks."""
    found = gpu_state(held, 10_000)
    assert (found.idle_nodes, found.idle_nodes_s) == (nodes, seconds)


def test_one_unknown_gpu_makes_it_unknown() -> None:
    """A node that does not report may be at work."""
    found = gpu_state([gpu("a", 4000), gpu("b", 4000, "unknown")], 10_000)
    assert (found.idle_nodes, found.idle_nodes_s) == (None, None)


def test_a_list_is_never_cut() -> None:
    """A long list is filled in whole or is unknown; the longest one passes the check of the action."""
    check = actions()["shrink"].options[0].check
    many = ",".join(f"node{number:04d}" for number in range(400))
    assert filled(FACT, {"ledger.idle_nodes": many}) == many
    assert filled(FACT, {"ledger.idle_nodes": many * 10}) == "unknown"
    assert filled(FACT, {}) == "unknown"
    for text in (widest(FACT, facts_of("running")), many, "none", "unknown"):
        assert check(text) == ""
    assert check(filled(FACT, {"ledger.idle_nodes": "a;b"})) != ""
