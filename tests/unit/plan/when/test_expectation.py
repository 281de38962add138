"""Expected starts against what a simulator of the same scheduler says, and on machines that need no simulator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.plan.when.queues import exactly, queue, spread

from gpuwaste.core.errors import UsageError
from gpuwaste.plan.start_time.drawn_waits import waits_of
from gpuwaste.plan.start_time.scheduler_queue import (
    LEVELS,
    MAX_POOLS,
    NO_LIMIT_S,
    QueuedRequest,
    SchedulerQueue,
    checked,
    jobs_of,
)
from gpuwaste.plan.start_time.start_expectation import CORRECTED, SIMULATED, expect
from gpuwaste.sim.schedulers import easy, fcfs
from gpuwaste.sim.trace import Planned

NOW = 1_000_000


def starts(found: Any) -> tuple[int, int, int]:
    assert found is not None
    return found.p10 - NOW, found.p50 - NOW, found.p90 - NOW


def test_free_machine() -> None:
    """On a machine with room a request starts at once, and ends when its run times say."""
    (found,) = expect(queue([[4]]), [exactly([4], 100, 60)])
    assert found is not None
    assert starts(found) == (0, 0, 0)
    assert found.ends == (NOW + 60, NOW + 60, NOW + 60)
    assert found.source == SIMULATED


JOB = st.tuples(st.integers(1, 5), st.integers(1, 30), st.integers(0, 30))


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(JOB, max_size=12),
    st.lists(JOB, max_size=6),
    st.tuples(st.integers(1, 5), st.integers(1, 30)),
    st.booleans(),
)
def test_equal_to_the_simulator(
    waiting: list[tuple[int, int, int]], running: list[tuple[int, int, int]], own: tuple[int, int], backfills: bool
) -> None:
    """With known run times EASY's and FCFS' interval is a point: the second at which the simulator starts it."""
    total, held, kept = 5, 0, []
    for job in running:
        if held + job[0] <= total:
            held += job[0]
            kept.append(job)
    rows = [*kept, *waiting, (own[0], own[1], 3)]
    sizes, run, limit = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    limit += run
    # Those that run are the simulator's first jobs; the others come a second later, when these have started.
    submit = np.array([0] * len(kept) + [1] * (len(rows) - len(kept)), np.int64)
    ahead = np.array([1] * len(kept) + [0] * (len(rows) - len(kept)), np.int64)
    jobs = Planned(submit, run + ahead, limit + ahead, limit + ahead, sizes, sizes[:0])
    expected = int((easy if backfills else fcfs).starts(jobs, total)[-1]) - 1
    asked = queue(
        [[total]],
        [exactly([p], r + m, r) for p, r, m in kept],
        [exactly([p], r + m, r) for p, r, m in waiting],
        backfills=backfills,
    )
    (found,) = expect(asked, [exactly([own[0]], own[1] + 3, own[1])], draws=2)
    assert starts(found) == (expected,) * 3


@settings(deadline=None, max_examples=examples(30))
@given(st.lists(JOB, min_size=1, max_size=8), st.integers(1, 5), st.integers(1, 30))
def test_tried_together_or_alone(waiting: list[tuple[int, int, int]], procs: int, run: int) -> None:
    """A request among others, last as a tried one or last as a real one in the queue, starts at the same instants."""
    asked = queue([[5]], [spread([3], 20)], [spread([p], r + m) for p, r, m in waiting])
    requests = [spread([procs], run), spread([1], 2), spread([5], 40)]
    together = expect(asked, requests, draws=8)
    alone = [expect(asked, [request], draws=8)[0] for request in requests]
    assert [starts(found) for found in together] == [starts(found) for found in alone]
    ahead = waits_of(checked(asked), jobs_of(requests, 1), [0, 0, 0], 8, 1)
    behind = waits_of(checked(asked), jobs_of(requests, 1), [None] * 3, 8, 1)
    assert (ahead[:, 1] <= behind[:, 1]).all()


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(st.tuples(JOB, st.integers(1, 3), st.integers(0, 15)), min_size=1, max_size=14),
    st.integers(1, 6),
    st.booleans(),
)
def test_jobs_of_a_kind_are_looked_at_as_all_others(
    waiting: list[tuple[tuple[int, int, int], int, int]], depth: int, backfills: bool
) -> None:
    """What a pass leaves out of jobs alike changes no start: with an amount that tells all apart they are the same."""
    found = []
    for apart in (0, 1):
        rows = [
            exactly([1 + p % 3, apart * n], 5 + m % 4, 1 + r % 5, pools=pools)._replace(begin_s=begin)
            for n, ((p, r, m), pools, begin) in enumerate(waiting)
        ]
        holds = [exactly([4, 0], 9, 7), exactly([3, 0], 6, 3, pools=2)]
        asked = queue([[4, 1000], [3, 1000]], holds, rows, backfills=backfills, depth=depth)
        requests = jobs_of([exactly([2, 0], 7, 5, pools=3), exactly([1, 0], 3, 3, pools=2)], 2)
        found.append(waits_of(checked(asked), requests, [None, 1], 2, 1).tolist())
    assert found[0] == found[1]


def test_place() -> None:
    """A request with a higher priority than the queue's jobs does not wait for them."""
    asked = queue([[4]], [exactly([4], 100, 50)], [exactly([4], 100, 100)])
    last, first = expect(asked, [exactly([4], 10, 10), exactly([4], 10, 10)._replace(place=0)])
    assert starts(last) == (150, 150, 150)
    assert starts(first) == (50, 50, 50)


def test_given_how_long_it_has_run() -> None:
    """What a running job runs on is drawn from the run times that are longer than it has run."""
    runs = [0, 5, 10, 20, 900, 950, 980, 1000]
    job = QueuedRequest([1], 1, 1000, runs, 30)
    (found,) = expect(queue([[1]], [job]), [exactly([1], 10, 10)], draws=400)
    low, middle, high = starts(found)
    assert 0 < low < middle < high <= 970
    assert middle > 700  # half of those beyond 20 s end after about 880 s of 1000


@pytest.mark.long
def test_more_draws_narrow() -> None:
    """The median of 400 draws moves less from seed to seed than the median of 10."""
    asked = queue([[2]], [spread([2], 1000)], [spread([1], 500) for _ in range(6)])

    def spread_of(draws: int) -> float:
        return float(np.std([starts(expect(asked, [spread([2], 9)], draws, seed)[0])[1] for seed in range(12)]))

    assert spread_of(400) < 0.5 * spread_of(10)


def test_pools() -> None:
    """A request that may run in two pools takes the free one; one that may not waits; a reservation is of one pool."""
    asked = queue([[2, 8], [2, 8]], [exactly([2, 1], 50, 50, 0b01)], [exactly([1, 8], 100, 100, 0b01)])
    both, one, large = expect(
        asked, [exactly([1, 8], 100, 100, 0b11), exactly([1, 1], 100, 100, 0b01), exactly([3, 1], 9, 9, 0b11)]
    )
    assert starts(both) == (0, 0, 0)
    assert starts(one) == (150, 150, 150)
    assert large is None, "larger than either pool"


def test_closed_for_maintenance() -> None:
    """A request whose limit reaches into a maintenance starts after it; a shorter one starts at once."""
    asked = queue([[4]])
    asked = asked._replace(machine=asked.machine._replace(closed=np.array([[1, 100, 400, -1]])))
    long, short = expect(asked, [exactly([1], 200, 20), exactly([1], 100, 20)])
    assert starts(long) == (400, 400, 400)
    assert starts(short) == (0, 0, 0)


def test_begin_and_depth() -> None:
    """A request waits for its --begin; one behind more jobs than a pass looks at is not looked at."""
    asked = queue([[4]], [exactly([3], 100, 100)], [exactly([2], 10, 10), exactly([2], 10, 10)], depth=2)
    later, behind = expect(asked, [exactly([1], 10, 10, 1, 7), exactly([1], 10, 10)])
    assert starts(later) == (110, 110, 110)
    assert starts(behind) == (110, 110, 110)
    later, behind = expect(asked._replace(depth=3), [exactly([1], 10, 10, 1, 7), exactly([1], 10, 10)])
    assert starts(later) == (7, 7, 7)
    assert starts(behind) == (0, 0, 0)


def test_corrected() -> None:
    """A correction moves the start, and the end with it; the answer says so."""

    class Later:
        def apply(self, waits_s: Any) -> Any:
            return [wait + 100 for wait in waits_s]

    (found,) = expect(queue([[4]]), [exactly([4], 100, 60)], correction=Later())
    assert found is not None
    assert starts(found) == (100, 100, 100)
    assert found.ends == (NOW + 160,) * 3
    assert found.source == CORRECTED


def test_unknown_limit() -> None:
    """A job without a limit is planned to run for a year, and what is known of its run times still counts."""
    endless = QueuedRequest([4], 1, 0, [10] * len(LEVELS), 0)
    assert checked(queue([[4]], [endless])).running.limit_s.tolist() == [NO_LIMIT_S]
    (found,) = expect(queue([[4]], [endless]), [exactly([1], 10, 10)])
    assert starts(found) == (10, 10, 10)


def test_columns_of_another_width() -> None:
    """Columns of 32 bits, in another order of memory, are what the compiled loop takes."""
    asked = queue([[4, 8]], [exactly([4, 8], 50, 50)])
    running, machine = asked.running, asked.machine
    narrow = running._replace(asks=np.asfortranarray(running.asks, np.int32), limit_s=running.limit_s.astype(np.int32))
    made = checked(asked._replace(running=narrow, machine=machine._replace(capacity=machine.capacity.astype(np.int32))))
    columns = (made.machine.capacity, made.running.asks, made.running.limit_s)
    assert all(column.dtype == np.int64 and column.flags.c_contiguous for column in columns)


def test_overdue() -> None:
    """A job that has passed its limit holds nobody up for longer than a minute."""
    (found,) = expect(queue([[1]], [exactly([1], 100, 100, 1, 500)]), [exactly([1], 10, 10)])
    assert 1 <= starts(found)[0] <= starts(found)[2] <= 60


def test_more_held_than_there_is() -> None:
    """Jobs that hold more than the machine has (nodes went down) do not end the simulation."""
    (found,) = expect(queue([[2]], [exactly([3], 50, 50)], [exactly([2], 9, 9)]), [exactly([1], 9, 9)])
    assert starts(found) == (59, 59, 59)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (lambda: queue([[-1]]), "negative or too large"),
        (lambda: queue([[4]] * (MAX_POOLS + 1)), "needs 1 to 62 pools"),
        (lambda: queue([[4]], depth=0), "depth 0"),
        (lambda: queue([[4]], [exactly([1], 10, 10, 0)]), "running job 0: runs in 0"),
        (lambda: queue([[4]], [], [exactly([1], 9, 9), exactly([-1], 10, 10)]), "waiting job 1: requests a negative"),
        (lambda: queue([[4]], [], [exactly([1 << 60], 10, 10)]), "waiting job 0: requests an amount"),
        (lambda: queue([[4]], [], [exactly([1], 10, 10, 2)]), "waiting job 0: names an unknown pool"),
        (lambda: queue([[4]], [], [exactly([1], 10, -1)]), "waiting job 0: has a negative time"),
        (lambda: queue([[4]], [], [exactly([1], 10, 10, 1, -5)]), "waiting job 0: has a negative time"),
        (lambda: queue([[4]], [], [QueuedRequest([1], 1, 9, [float("nan")] * 8)]), "waiting job 0: has a run time"),
        (lambda: queue([[4]], [], [exactly([1, 2], 10, 10)]), "request 0: needs 1 amounts"),
    ],
)
def test_bad_queue(broken: Callable[[], SchedulerQueue], told: str) -> None:
    """What no cluster can have is refused with the job that has it."""
    with pytest.raises(UsageError, match=told):
        expect(broken(), [exactly([1], 10, 10)])


def test_bad_request() -> None:
    """A request is checked as the queue is; no draws are refused; nothing asked is nothing answered."""
    with pytest.raises(UsageError, match="asked job 0: names an unknown pool"):
        expect(queue([[4]]), [exactly([1], 10, 10, 4)])
    with pytest.raises(UsageError, match="0 draws"):
        expect(queue([[4]]), [], draws=0)
    assert expect(queue([[4]]), []) == []
