"""What is expected of a request: when it would start and end, from a queue played forward many times."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.plan.when.forward import Asked, Held, Rules, played
from gpuwaste.plan.when.queue import Candidate, Ints, Jobs, Pools, Queue, checked, checked_jobs, jobs_of
from gpuwaste.plan.when.run_times import believed_rest, drawn, drawn_rest

QUANTILES: Final = (0.1, 0.5, 0.9)
MAX_DRAWS: Final = 1000
SIMULATED: Final = "simulated"
CORRECTED: Final = "simulated, corrected by past waits"


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
    draws: int = 50,
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


def waits_of(queue: Queue, asked: Jobs, places: Sequence[int | None], draws: int, seed: int) -> Ints:
    """Return the waits [draws, c] of requests, each alone behind the first `place` of the queue; -1: it never starts.

    Those behind all others are played together, since they change nothing for each other.
    """
    rng = np.random.default_rng([seed, 0])
    rest, runs = drawn_rest(queue.running, rng, draws), drawn(queue.waiting, rng, draws)
    waits = np.full((draws, len(places)), -1, np.int64)
    n = len(queue.waiting.limit_s)
    behind = [k for k, place in enumerate(places) if place is None or place >= n]
    none = _rows(asked, [])
    for draw in range(draws):
        held = _held(queue.running, rest[draw])
        waiting = _asked(queue.waiting, runs[draw])
        if behind:
            tried = _asked(_rows(asked, behind), np.ones(len(behind), np.int64))
            rules = Rules(queue.depth, queue.backfills, -1)
            waits[draw, behind] = played(queue.machine, held, waiting, tried, rules)[1]
    for k, place in enumerate(places):
        if place is None or place >= n:
            continue
        at = max(place, 0)
        rules = Rules(queue.depth, queue.backfills, at)
        joined = Jobs(*(np.insert(all_, at, own[k], axis=0) for all_, own in zip(queue.waiting, asked, strict=True)))
        for draw in range(draws):
            waiting = _asked(joined, np.insert(runs[draw], at, 1))
            found = played(
                queue.machine, _held(queue.running, rest[draw]), waiting, _asked(none, runs[draw, :0]), rules
            )
            waits[draw, k] = found[0][at]
    return waits


def closed_never(capacity: Ints) -> Pools:
    """Return a machine whose pools are always open."""
    return Pools(capacity, np.zeros((len(capacity), 2), np.int64))


def _told(now: int, waits: Ints, runs: Ints, correction: Correction | None) -> Expectation | None:
    if (waits < 0).any():
        return None
    said: Sequence[float] = np.quantile(waits, QUANTILES, method="inverted_cdf").tolist()
    before = said
    if correction is not None:
        said = correction.apply(said)
    # A correction moves the start; the run is as drawn.
    ends = np.quantile(_moved(waits, before, said) + runs, QUANTILES, method="inverted_cdf").tolist()
    starts = [now + round(wait) for wait in said]
    source = SIMULATED if correction is None else CORRECTED
    return Expectation(starts[0], starts[1], starts[2], tuple(now + round(end) for end in ends), source)


def _moved(
    waits: Ints, before: Sequence[float], after: Sequence[float]
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    ranks = (np.argsort(np.argsort(waits, kind="stable"), kind="stable") + 0.5) / len(waits)
    if list(before) == list(after):
        return waits.astype(np.float64)
    found = np.interp(ranks, QUANTILES, after)
    return np.asarray(found, np.float64)


def _rows(jobs: Jobs, rows: Sequence[int]) -> Jobs:
    chosen = np.array(rows, np.intp)
    return Jobs(*(column[chosen] for column in jobs))


def _held(jobs: Jobs, rest: Ints) -> Held:
    return Held(jobs.asks, _number(jobs.pools), rest, believed_rest(jobs))


def _asked(jobs: Jobs, run: Ints) -> Asked:
    return Asked(jobs.asks, jobs.pools, jobs.limit_s, run, jobs.since_s)


def _number(pools: Ints) -> Ints:
    """Return the number of the only pool of each job."""
    return np.round(np.log2(np.maximum(pools, 1).astype(np.float64))).astype(np.int64)
