"""What is expected of a request: when it would start and end, from a queue played forward many times."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.plan.when.forward import Asked, Held, Rules, played
from gpuwaste.plan.when.queue import Candidate, Floats, Ints, Jobs, Pools, Queue, checked, checked_jobs, jobs_of
from gpuwaste.plan.when.run_times import believed_rest, drawn, drawn_rest

QUANTILES: Final = (0.1, 0.5, 0.9)
MAX_DRAWS: Final = 1000
SIMULATED: Final = "simulated"
CORRECTED: Final = "simulated, corrected by past waits"
LEARNT: Final = "learnt from past waits"


class Expectation(NamedTuple):
    """p10, p50 and p90 of the start, and of the end (`ends`), in UTC seconds; `source` says how they are known."""

    p10: int
    p50: int
    p90: int
    ends: tuple[int, int, int]
    source: str


class Correction(Protocol):
    """What a site's own ended waits have taught (correction.py)."""

    def apply(self, waits_s: Sequence[float]) -> Sequence[float]:
        """Return better quantiles for p10, p50 and p90 of a wait, in seconds."""
        ...


def expect(
    queue: Queue,
    candidates: Sequence[Candidate],
    draws: int = 40,
    seed: int = 1,
    correction: Correction | None = None,
) -> list[Expectation | None]:
    """Return what is expected of each request, None for one that this machine cannot run.

    All are tried on the same drawn run times, each as if it were submitted alone. Raises UsageError for a queue or a
    request that cannot be.
    """
    if not 0 < draws <= MAX_DRAWS:
        raise UsageError(f"{draws} draws: needs 1 to {MAX_DRAWS}")
    queue = checked(queue)
    capacity = queue.machine.capacity
    asked = checked_jobs(jobs_of(candidates, capacity.shape[1]), capacity.shape, "asked")
    waits = waits_of(queue, asked, [candidate.place for candidate in candidates], draws, seed)
    runs = drawn(asked, np.random.default_rng([seed, 1]), draws)
    return [_told(queue.now, waits[:, k], runs[:, k], correction) for k in range(len(candidates))]


def expect_learnt(
    queue: Queue, candidates: Sequence[Candidate], waits_s: Sequence[Sequence[float]], draws: int = 40, seed: int = 1
) -> list[Expectation | None]:
    """Return what follows from learnt p10, p50 and p90 of each wait; None for what no pool of this machine can hold.

    The queue is not played: run times alone are drawn. Raises UsageError for a request that cannot be.
    """
    capacity = queue.machine.capacity
    asked = checked_jobs(jobs_of(candidates, capacity.shape[1]), capacity.shape, "asked")
    runs = drawn(asked, np.random.default_rng([seed, 1]), draws)
    ranks = (np.random.default_rng([seed, 2]).permutation(draws) + 0.5) / draws
    found: list[Expectation | None] = []
    for k, said in enumerate(waits_s):
        own = [p for p in range(len(capacity)) if int(asked.pools[k]) >> p & 1 and (asked.asks[k] <= capacity[p]).all()]
        moved = np.interp(ranks, QUANTILES, said)
        found.append(_expectation(queue.now, said, moved + runs[:, k], LEARNT) if own else None)
    return found


def waits_of(queue: Queue, asked: Jobs, places: Sequence[int | None], draws: int, seed: int) -> Ints:
    """Return the waits [draws, c] of requests, each alone behind the first `place` of the queue; -1: it never starts.

    Those behind all others are played together, since they change nothing for each other.
    """
    rng = np.random.default_rng([seed, 0])
    rest, runs = drawn_rest(queue.running, rng, draws), drawn(queue.waiting, rng, draws)
    waits = np.full((draws, len(places)), -1, np.int64)
    n, kinds = len(queue.waiting.limit_s), kinds_of(queue.waiting)
    behind = [k for k, place in enumerate(places) if place is None or place >= n]
    none, last = _rows(asked, []), _rows(asked, behind)
    for draw in range(draws if behind else 0):
        waiting = _asked(queue.waiting, runs[draw], kinds)
        waits[draw, behind] = _once(queue, rest[draw], waiting, _alone(last, np.ones(len(behind), np.int64)), -1)[1]
    for k, place in enumerate(places):
        if place is None or place >= n:
            continue
        at = max(place, 0)
        joined = _joined(queue.waiting, asked, k, at)
        kinds = kinds_of(joined)
        for draw in range(draws):
            waiting = _asked(joined, np.insert(runs[draw], at, 1), kinds)
            waits[draw, k] = _once(queue, rest[draw], waiting, _alone(none, runs[draw, :0]), at)[0][at]
    return waits


def _once(queue: Queue, rest: Ints, waiting: Asked, tried: Asked, watched: int) -> tuple[Ints, Ints]:
    running = queue.running
    held = Held(running.asks, _number(running.pools), rest, believed_rest(running))
    return played(queue.machine, held, waiting, tried, Rules(queue.depth, queue.backfills, watched))


def closed_never(capacity: Ints) -> Pools:
    """Return a machine whose pools are always open."""
    return Pools(capacity, np.zeros((len(capacity), 2), np.int64))


def _told(now: int, waits: Ints, runs: Ints, correction: Correction | None) -> Expectation | None:
    if (waits < 0).any():
        return None
    said = [float(wait) for wait in np.quantile(waits, QUANTILES, method="inverted_cdf")]
    moved, source = waits.astype(np.float64), SIMULATED
    if correction is not None:
        said, source = list(correction.apply(said)), CORRECTED
        # A draw keeps its rank: what has moved is the wait, not how long the job runs.
        ranks = (np.argsort(np.argsort(waits, kind="stable"), kind="stable") + 0.5) / len(waits)
        moved = np.interp(ranks, QUANTILES, said)
    return _expectation(now, said, moved + runs, source)


def _expectation(now: int, waits_s: Sequence[float], ends_s: Floats, source: str) -> Expectation:
    ends = np.quantile(ends_s, QUANTILES, method="inverted_cdf")
    first, middle, last = (now + round(wait) for wait in waits_s)
    return Expectation(first, middle, last, (now + round(ends[0]), now + round(ends[1]), now + round(ends[2])), source)


def _rows(jobs: Jobs, rows: Sequence[int]) -> Jobs:
    at = np.array(rows, np.intp)
    return Jobs(jobs.asks[at], jobs.pools[at], jobs.limit_s[at], jobs.run_s[at], jobs.since_s[at])


def _joined(waiting: Jobs, asked: Jobs, k: int, at: int) -> Jobs:
    """Return the waiting jobs with request k among them."""
    return Jobs(
        np.insert(waiting.asks, at, asked.asks[k], axis=0),
        np.insert(waiting.pools, at, asked.pools[k]),
        np.insert(waiting.limit_s, at, asked.limit_s[k]),
        np.insert(waiting.run_s, at, asked.run_s[k], axis=0),
        np.insert(waiting.since_s, at, asked.since_s[k]),
    )


def kinds_of(jobs: Jobs) -> Ints:
    """Return a number for each job, [n] from 0: equal for jobs that ask for the same in the same pools."""
    rows = np.column_stack((jobs.asks, jobs.pools, jobs.limit_s))
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _asked(jobs: Jobs, run: Ints, kinds: Ints) -> Asked:
    return Asked(jobs.asks, jobs.pools, jobs.limit_s, run, jobs.since_s, kinds)


def _alone(jobs: Jobs, run: Ints) -> Asked:
    """Return requests that are asked about, each for itself: no kind is of use."""
    return _asked(jobs, run, np.arange(len(run)))


def _number(pools: Ints) -> Ints:
    """Return the number of the only pool of each job."""
    return np.round(np.log2(np.maximum(pools, 1).astype(np.float64))).astype(np.int64)
