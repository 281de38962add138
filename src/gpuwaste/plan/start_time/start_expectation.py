"""The expectation for a request: when it would start and end, from many forward simulations of the queue."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.plan.start_time.drawn_waits import waits_of
from gpuwaste.plan.start_time.node_room import pools_with_enough
from gpuwaste.plan.start_time.run_times import drawn
from gpuwaste.plan.start_time.scheduler_queue import (
    Floats,
    Ints,
    QueuedRequest,
    QueueJobs,
    SchedulerQueue,
    checked,
    checked_jobs,
    jobs_of,
)

QUANTILES: Final = (0.1, 0.5, 0.9)
MAX_DRAWS: Final = 1000
SIMULATED: Final = "simulated"
CORRECTED: Final = "simulated, corrected by past waits"
LEARNT: Final = "learnt from past waits"


class StartExpectation(NamedTuple):
    """p10, p50 and p90 of the start, and of the end (`ends`), in UTC seconds; `source` is how they were found."""

    p10: int
    p50: int
    p90: int
    ends: tuple[int, int, int]
    source: str


class Correction(Protocol):
    """The correction learnt from a site's own ended waits (wait_correction.py)."""

    def apply(self, waits_s: Sequence[float]) -> Sequence[float]:
        """Return corrected p10, p50 and p90 of a wait, in seconds."""
        ...


def expect(
    queue: SchedulerQueue,
    candidates: Sequence[QueuedRequest],
    draws: int = 40,
    seed: int = 1,
    correction: Correction | None = None,
) -> list[StartExpectation | None]:
    """Return the expectation for each request, None for one that this machine cannot run.

    All are tried on the same drawn run times, each as if only it were submitted. Raises UsageError for an impossible
    queue or request.
    """
    if not 0 < draws <= MAX_DRAWS:
        raise UsageError(f"{draws} draws: needs 1 to {MAX_DRAWS}")
    queue = checked(queue)
    asked = asked_of(queue, candidates)
    waits = waits_of(queue, asked, [candidate.place for candidate in candidates], draws, seed)
    runs = drawn(asked, np.random.default_rng([seed, 1]), draws)
    return [_told(queue.now, waits[:, k], runs[:, k], correction) for k in range(len(candidates))]


def expect_learnt(
    queue: SchedulerQueue,
    candidates: Sequence[QueuedRequest],
    waits_s: Sequence[Sequence[float]],
    draws: int = 40,
    seed: int = 1,
) -> list[StartExpectation | None]:
    """Return the expectations from learnt p10, p50 and p90 of each wait; None for what no pool of the machine can hold.

    The queue is not simulated: only run times are drawn. Raises UsageError for an impossible request.
    """
    queue = checked(queue)
    asked = asked_of(queue, candidates)
    own = pools_with_enough(queue.machine.capacity, queue.machine.pool, asked.asks, asked.nodes, asked.pools)
    runs = drawn(asked, np.random.default_rng([seed, 1]), draws)
    ranks = (np.random.default_rng([seed, 2]).permutation(draws) + 0.5) / draws
    found: list[StartExpectation | None] = []
    for k, said in enumerate(waits_s):
        moved = np.interp(ranks, QUANTILES, said)
        found.append(_expectation(queue.now, said, moved + runs[:, k], LEARNT) if own[k] else None)
    return found


def asked_of(queue: SchedulerQueue, candidates: Sequence[QueuedRequest]) -> QueueJobs:
    """Return requests as rows for a checked queue. Raises UsageError for an impossible one."""
    tres = 0 if queue.limits is None else queue.limits.table.qos_tres.shape[2]
    return checked_jobs(jobs_of(candidates, queue.machine.capacity.shape[1], tres), queue, "asked")


def _told(now: int, waits: Ints, runs: Ints, correction: Correction | None) -> StartExpectation | None:
    if (waits < 0).any():
        return None
    said = [float(wait) for wait in np.quantile(waits, QUANTILES, method="inverted_cdf")]
    moved, source = waits.astype(np.float64), SIMULATED
    if correction is not None:
        said, source = list(correction.apply(said)), CORRECTED
        # A draw keeps its rank: the wait is corrected, not the run time.
        ranks = (np.argsort(np.argsort(waits, kind="stable"), kind="stable") + 0.5) / len(waits)
        moved = np.interp(ranks, QUANTILES, said)
    return _expectation(now, said, moved + runs, source)


def _expectation(now: int, waits_s: Sequence[float], ends_s: Floats, source: str) -> StartExpectation:
    ends = np.quantile(ends_s, QUANTILES, method="inverted_cdf")
    first, middle, last = (now + round(wait) for wait in waits_s)
    return StartExpectation(
        first, middle, last, (now + round(ends[0]), now + round(ends[1]), now + round(ends[2])), source
    )
