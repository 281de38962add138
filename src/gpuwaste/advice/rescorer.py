"""Rescorer: predicts running jobs again at their start, ten minutes later, before their limit; a thread of the hub.

The prediction of a run at a moment, its event and its mail are one transaction: after a kill -9 either all exist or
none, and none is created twice. Jobs are not touched.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Final

from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.advice.predict.prediction_types import Scored, TargetPrediction
from gpuwaste.advice.rescore_store import DueRun, LimitForecast, Rescore, RescoreSettings, RescoreStore
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.job import JobRescored, LimitNear
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import request_of
from gpuwaste.store.database import Database

EVERY_S: Final = 60.0
SOON_S: Final = 1.0
MOST: Final = 5000  # runs read from the store at a time
PAGE: Final = 250  # runs scored at a time: the longest that other predictions wait
_FAILED: Final = log_event.warning(
    "rescoring-failed: cannot predict running jobs again: {error}",
    "Check the store, the model and `[notify] address_file`. Retried each minute; jobs that end first are left out.",
)


class Rescorer:
    """`worker` runs it. `tells` returns whether anybody receives events.

    `noted` returns the function that writes the mails to owners of jobs near their limits, at a time in UTC seconds.
    """

    def __init__(
        self,
        store: RescoreStore,
        asks: Predictions,
        cluster: Callable[[], str],
        clock: Clock,
        *,
        settings: RescoreSettings,
        noted: Callable[[Sequence[LimitForecast], int], Callable[[Database], None]],
        tells: Callable[[], bool],
    ) -> None:
        self._store, self._asks, self._cluster, self._clock = store, asks, cluster, clock
        self._settings, self._noted, self._tells = settings, noted, tells
        self._trouble = RepeatSuppressor()
        self.worker = Worker("rescoring", self.step, clock)

    def step(self) -> float | None:
        """Do what is due; return the seconds to wait, None if it is off. Raises no GpuwasteError."""
        if not self._settings.enabled:
            return None
        try:
            wait_s = self._turn(self._cluster())
        except GpuwasteError as error:
            if self._trouble.news(str(error)):
                _FAILED.log(error=error)
            return EVERY_S
        self._trouble.over()
        return wait_s

    def rescore(self, cluster: str) -> tuple[int, int]:
        """Score up to MOST runs that are due; return how many there were, and how many are stored now.

        Raises StoreError, ModelError, AddressError.
        """
        due = self._store.due(cluster, self._settings.lead, MOST)
        # If addresses cannot be looked up, the runs before their limit stay due for the next time; the others are done.
        limits = [one for one in due if one.moment == "limit"]
        new = sum(map(self._keep, ([one for one in due if one.moment != "limit"], limits)))
        return len(due), new

    def _turn(self, cluster: str) -> float:
        if not cluster or not self._asks.ready:
            return EVERY_S
        due, new = self.rescore(cluster)
        if due == MOST and new:
            return SOON_S
        following = self._store.next_at(cluster, self._settings.lead)
        return EVERY_S if following is None else min(max(following - self._clock.utc_s(), SOON_S), EVERY_S)

    def _keep(self, due: Sequence[DueRun]) -> int:
        """Score some runs and store their predictions. Return how many were new."""
        now = self._clock.utc_s()
        # A run at its limit without a probability is scored again in a minute: runs of this user may end until then.
        found = [one for one in self._scored(due, now) if one.said.moment != "limit" or one.said.limit_p is not None]
        near = [one for one in found if one.said.limit_p is not None and one.said.limit_p >= self._settings.least_p]
        told = list(_events(found, near)) if self._tells() else []
        return self._store.add([one.said for one in found], told, self._noted(near, now))

    def _scored(self, due: Sequence[DueRun], now: int) -> Iterator[LimitForecast]:
        """Yield the prediction of each run as if it were submitted now: runs that ended since its submission count."""
        for first in range(0, len(due), PAGE):
            page = due[first : first + PAGE]
            answer = self._asks.scored([replace(request_of(one.job), submit=now) for one in page])
            if answer is None:
                return
            for one, scored in zip(page, answer[0], strict=True):
                yield LimitForecast(one.job, _said(one, scored, now, answer[1]))


def _said(due: DueRun, scored: Scored, now: int, model_hash: str) -> Rescore:
    p = {one.target: one.p for one in scored.targets if one.p is not None}
    said = Rescore(due.job.run_key, due.moment, now, p, model_hash=model_hash, usual=scored.usually_late)
    if due.moment != "limit" or due.limit_at is None or due.job.time_limit_s is None:
        return said
    limit_s = due.job.time_limit_s
    chance = limit_chance(scored.targets, limit_s - (due.limit_at - now), limit_s)
    return replace(said, limit_p=chance, limit_at=due.limit_at)


def _events(found: Sequence[LimitForecast], near: Sequence[LimitForecast]) -> Iterator[StoredEvent]:
    """Yield the events of predictions; for a limit only if it is near."""
    for job, said in found:
        if said.moment != "limit":
            data = JobRescored(*_owner(job, said), said.moment, said.p, said.model_hash)
            yield tell("job.rescored", data, said.at_utc, run=said.run, unique=said.moment)
    for job, said in near:
        limit_at, limit_s, p = said.limit_at or 0, job.time_limit_s or 0, said.limit_p or 0.0
        limit = LimitNear(*_owner(job, said), limit_at, limit_s, p, said.usual, said.model_hash)
        yield tell("job.limit_near", limit, said.at_utc, run=said.run)


def _owner(job: JobRecord, said: Rescore) -> tuple[str, int, int, str, str]:
    return said.run.cluster, said.run.job_id, said.run.start, job.user, job.account


def limit_chance(said: Sequence[TargetPrediction], ran_s: float, limit_s: float) -> float | None:
    """Return P(the run reaches `limit_s` | it has lasted `ran_s`), None if neither is known.

    Two predictions give the share of runs that reach the limit: the target timeout, and a quantile of the run time that
    equals the limit; the larger one counts. The share that lasts for `ran_s` is interpolated linearly between the
    quantiles, and from the last one on linearly to those that reach the limit. A run that has outlived all quantiles
    below the limit is therefore expected to reach the limit.
    """
    by_name = {one.target: one for one in said}
    timeout, walltime = by_name.get("timeout"), by_name.get("walltime")
    quantiles = {} if walltime is None else walltime.quantiles
    known = sorted((float(level), seconds) for level, seconds in quantiles.items())
    reaching = [1 - level for level, seconds in known if seconds >= limit_s]
    if timeout is not None and timeout.p is not None:
        reaching.append(_share(timeout))
    if not reaching or limit_s <= 0:
        return None
    p = max(reaching)
    within = sorted((seconds, 1 - level) for level, seconds in known if 0 < seconds < limit_s)
    lasting = accumulate((share for _, share in within), min)  # quantiles of a model may cross; no run restarts
    within = [(seconds, share) for (seconds, _), share in zip(within, lasting, strict=True)]
    alive = max(_lasting([(0.0, 1.0), *within, (limit_s, p)], ran_s), p)
    return p / alive if alive > 0 else None


def _lasting(shares: Sequence[tuple[float, float]], at_s: float) -> float:
    """Return the share of runs that last for `at_s`, linear between (seconds, share); the last share beyond."""
    for (begin, before), (end, after) in pairwise(shares):
        if begin <= at_s < end:
            return before + (after - before) * (at_s - begin) / (end - begin)
    return shares[-1][1]


def _share(timeout: TargetPrediction) -> float:
    """Return the share of runs that reach their limit; to k counted runs one of either kind is added (Laplace)."""
    assert timeout.p is not None  # noqa: S101 narrows the type
    if timeout.source != "history":
        return timeout.p
    return (timeout.p * timeout.basis + 1) / (timeout.basis + 2)
