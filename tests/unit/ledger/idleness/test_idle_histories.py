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

pytestmark = [pytest.mark.long, pytest.mark.drawn]

HISTORIES = 10_000  # with the profile unit FEW
FEW = 400
BLOCKS = 8


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_yes_is_false_and_a_healthy_site_says_yes(block: int) -> None:
    """Of 10,000 lives none gets a yes that the truth contradicts; what idles on a healthy site for long gets it."""
    found, seed = IdleFindings(), block
    while found.histories < (FEW if few() else HISTORIES) / BLOCKS:
        found.add(drawn_world(seed))
        seed += BLOCKS + 1  # so that each block has healthy scenes
    assert not found.false, found.false
    assert not found.missed, found.missed
    assert found.answers["job yes"] > found.histories / 10, found.answers
    assert found.answers["node yes"] > 0, found.answers
