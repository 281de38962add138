"""Never a false yes: drawn clusters with every fault that is known, against their truth, second by second.

A history is the life of one run or node. Faults: agents that are dead, restarted, restarted without their state or cut
off; batches that are late or sent twice; clocks of agents and hub apart, either way, or set; accounting or slurmctld
that does not answer, slurmdbd behind slurmctld; hubs that restart, or get an older store; GPUs that wake up, that no
driver lists, MIG, shards; jobs that are suspended, requeued, completing; ids that are used again, arrays, het jobs,
jobs without GPUs.
"""

import pytest
from tests.examples import few
from tests.unit.ledger.idleness.idle_findings import IdleFindings
from tests.unit.ledger.idleness.idle_world import drawn_world

pytestmark = [pytest.mark.long, pytest.mark.drawn, pytest.mark.timeout(1800)]

HISTORIES = 10_000  # with the profile unit one scene in each block
BLOCKS = 40
HEALTHY = 4  # every fourth scene is


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_yes_is_false_and_a_healthy_site_says_yes(block: int) -> None:
    """Of 10,000 lives none gets a yes that the truth contradicts; what idles on a healthy site for long gets one."""
    found, seed = IdleFindings(), block
    while found.histories < (1 if few() else HISTORIES / BLOCKS):
        found.add(drawn_world(seed))
        seed += BLOCKS
    assert not found.false, found.false
    assert not found.missed, found.missed


def test_most_idle_jobs_and_nodes_get_their_yes() -> None:
    """A judge that says unknown to everything is no use: on healthy sites many answers are yes, for jobs and nodes."""
    found = IdleFindings()
    for seed in range(0, 6 * HEALTHY, HEALTHY):
        found.add(drawn_world(seed))
    assert not found.missed, found.missed
    assert found.due >= 5, found.answers
    assert found.answers["job yes"] > found.histories / 4, found.answers
    assert found.answers["node yes"] > 5, found.answers
