"""A small soak: agents of many nodes against one hub that is killed and comes back; what was put is what is stored."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.fleet import Fleet, FleetPlan, write_tokens
from gpuwaste.testing.fleet_compare import compare
from gpuwaste.testing.fleet_rows import GPUS
from gpuwaste.testing.lone_hub import LoneHub

NODES = 40
HOURS = 24


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoneHub]:
    """Run a hub that knows a token for each node."""
    tokens = tmp_path / "tokens"
    write_tokens(tokens, NODES)
    hub = LoneHub(tmp_path, hub={"node_tokens_file": str(tokens), "rollup_days": 0}, common={"token_file": str(tokens)})
    hub.start()
    yield hub
    hub.stop()


@pytest.fixture
def fleet(hub: LoneHub, tmp_path: Path) -> Iterator[Fleet]:
    """Run the agents of forty nodes in this process."""
    fleet = Fleet(FleetPlan(hub.url, tmp_path / "fleet", 0, NODES))
    yield fleet
    fleet.stop()


def _wake_and_wait_for_the_first(fleet: Fleet) -> None:
    known = fleet.acknowledged
    fleet.wake()
    wait_until(lambda: fleet.acknowledged > known, 60, "a batch to be acknowledged")


def test_a_hub_killed_under_load_has_what_was_put(hub: LoneHub, fleet: Fleet, tmp_path: Path) -> None:
    """After kill -9 amid batches, and rows that came while it was away, keys and values of both sides are equal."""
    for version, final in ((1, False), (2, True)):
        fleet.put(0, HOURS, version, final=final)
        _wake_and_wait_for_the_first(fleet)
        assert hub.kill() == -signal.SIGKILL
        fleet.put(HOURS * version, HOURS)
        fleet.fail()
        hub.start()
        fleet.wake()
        fleet.wait_empty(40)
    seen = fleet.tally()
    assert seen.outcomes["not reached"] >= NODES
    assert seen.outcomes["other"] == 0, seen.errors
    hub.stop()
    found = compare(tmp_path / "state" / "hub.duckdb", [tmp_path / "fleet" / "sent-0.tsv"])
    assert found.sent == NODES * GPUS * HOURS * 3
    assert found.equal, found
