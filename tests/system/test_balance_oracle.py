"""The balance of a machine beside `sreport cluster Utilization` of a real slurmdbd, to the second, hour by hour."""

import time
from collections import Counter
from random import Random, SystemRandom

import pytest
from tests.conftest import ClusterFactory
from tests.system.accounted_case import accounted, set_back
from tests.system.drawn_days import drawn_day
from tests.system.lived_day import SLURMD_TIMEOUT_S, live
from tests.system.read_balance import by_class, read_balance
from tests.system.slurmdbd_rows import insert, roll_up, sreport
from tests.system.sreport_columns import Cause, columns, hours, moves, with_moves
from tests.unit.ledger.balance.happened import Case
from tests.unit.ledger.balance.reference import HOUR

from gpuwaste.testing.cluster import LoopbackCluster, Variant

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
DAY = 24 * HOUR
FIRST = 1_767_225_600
"""2026-01-01 in UTC."""
BACK_S = 3 * HOUR
"""By how much a lived day is set back, so that its hours are over."""
DAYS = 4
MOST_DAYS = 40


def compared(cluster: LoopbackCluster, case: Case) -> Counter[Cause]:
    """Compare each hour with sreport's and return the GPU-seconds that it counts otherwise, by cause."""
    roll_up(cluster, case.start, case.end)
    sums = read_balance(cluster, case)
    found: Counter[Cause] = Counter()
    for hour in hours(case):
        agreed, moved = columns(by_class(sums, *hour)), moves(case, *hour)
        assert sreport(cluster, *hour) == with_moves(agreed, moved), f"{hour} {moved} {case}"
        for move in moved:
            found[move.cause] += abs(move.gpu_s)
    return found


def test_drawn_days_are_those_of_sreport(make_cluster: ClusterFactory) -> None:
    """Each hour of drawn days has sreport's seconds in every column, but for named differences, each of which is seen.

    Days of failures, drains and suspended runs have none; days with reservations do.
    """
    cluster = make_cluster()
    seed = SystemRandom().randrange(1_000_000)
    print(f"days drawn from seed {seed}")  # noqa: T201 pytest shows it when the test fails
    seen: Counter[Cause] = Counter()
    for day in range(MOST_DAYS):
        plain = day % 2 == 0
        case = drawn_day(Random(seed + day), FIRST + day * DAY, plain=plain)
        insert(cluster, case)
        found = compared(cluster, case)
        assert not (plain and found)
        seen += found
        if day >= DAYS and len(seen) == len(Cause):
            break
    assert set(seen) == set(Cause)


def test_a_lived_day_is_that_of_sreport(make_cluster: ClusterFactory) -> None:
    """What slurmctld itself reported of failures, drains, requeues and reservations gives sreport's seconds."""
    cluster = make_cluster(Variant(slurm_conf=f"SlurmdTimeout={SLURMD_TIMEOUT_S}", cred_expire_s=5))
    began = int(time.time())
    live(cluster)
    ended = int(time.time()) + 1
    set_back(cluster, BACK_S)
    case = accounted(cluster, began // HOUR * HOUR - BACK_S, -(-ended // HOUR) * HOUR - BACK_S)
    assert Cause.RESERVED_RUN in compared(cluster, case)
    classes = by_class(read_balance(cluster, case), case.start, case.end)
    assert set(classes) == {"allocated", "down", "drained", "reserved", "maintenance", "free"}
