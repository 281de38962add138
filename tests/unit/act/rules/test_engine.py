"""One pass after another over facts that change: each round of a ladder is one of its own."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_file import rule_from_toml
from gpuwaste.act.rules.rule_matching import StepsSpent
from gpuwaste.act.rules.rule_pass import Ladders, PassInstant, evaluate
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock

DAY = 86400
MINUTE = 60
NODES = b"""about = "node"
where = "node.failed_in_row >= 5"
[[do]]
action = "drain"
reason = "it fails"
"""
RUNS = b"""where = "job.gpus > 0"
after = "30m"
[[do]]
action = "cancel"
"""
_OF_NODE = """SELECT 0 AS place, 'gw' AS cluster, 0 AS job_id, 0 AS run_start, 0 AS at_utc, 'gpu1' AS printed_id,
    'gpu1' AS "node.name", $value::BIGINT AS "node.failed_in_row" """
_OF_RUN = """SELECT 0 AS place, 'gw' AS cluster, 8 AS job_id, 100 AS run_start, 0 AS at_utc, '8' AS printed_id,
    8 AS "job.id", 'alice' AS "job.user", 'p' AS "job.account", 'gpu' AS "job.partition", 'q' AS "job.qos",
    '' AS "job.reservation", $value::BIGINT AS "job.gpus" """


class Passes:
    """A rule over one subject, pass by pass."""

    def __init__(self, store: HubStore, rule: Rule, facts: str) -> None:
        self._store, self._rule, self._facts = store, rule, facts
        self.ladders: Ladders = {}

    def at(self, now: int, value: int) -> list[str]:
        """Return the ids of the steps that are done at an instant."""
        with self._store.reader() as db:
            db.execute(f"CREATE OR REPLACE TEMP TABLE facts AS {self._facts}", {"value": value})
            instant = PassInstant(now, datetime.fromtimestamp(now, UTC))
            found = evaluate(db, [self._rule], {"r": self.ladders}, {"r": StepsSpent()}, instant)[0]
        return [firing.intent.id for firing in found.firings]


@pytest.fixture
def store() -> Iterator[HubStore]:
    """Open a store in memory."""
    found = HubStore.open(":memory:", FakeClock())
    yield found
    found.close()


def test_a_node_that_fails_again_after_months_is_another_action(store: HubStore) -> None:
    """Its first action is kept for longer than a month: with the same id the second one would never be taken."""
    passes = Passes(store, rule_from_toml(NODES, "r.toml", "r"), _OF_NODE)
    first = passes.at(1000, 5)
    for day in range(1, 91):
        assert passes.at(1000 + day * DAY, 0) == []
    second = passes.at(1000 + 91 * DAY, 5)
    assert (len(first), len(second), first != second) == (1, 1, True)


def test_a_round_that_is_broken_off_is_not_the_first_one_again(store: HubStore) -> None:
    """After the cooldown the condition holds for a while, not long enough for a step, and later for long enough."""
    passes = Passes(store, rule_from_toml(RUNS, "r.toml", "r"), _OF_RUN)
    assert passes.at(0, 1) == []
    first = passes.at(30 * MINUTE, 1)
    again = 2 * DAY
    assert passes.at(again, 0) == []
    assert passes.at(again + 1, 1) == []  # the second round begins
    assert passes.at(again + 10 * MINUTE, 0) == []
    assert passes.at(again + 20 * MINUTE, 1) == []
    second = passes.at(again + 50 * MINUTE, 1)
    assert (len(first), len(second), first != second) == (1, 1, True)


def test_a_run_that_is_over_is_forgotten(store: HubStore) -> None:
    """A run never comes back: its ladder goes after a month, whatever its round."""
    passes = Passes(store, rule_from_toml(RUNS, "r.toml", "r"), _OF_RUN)
    for now in (0, 30 * MINUTE, 2 * DAY):
        passes.at(now, 1)
    passes.at(2 * DAY + MINUTE, 0)
    assert len(passes.ladders) == 1
    passes.at(40 * DAY, 0)
    assert passes.ladders == {}
