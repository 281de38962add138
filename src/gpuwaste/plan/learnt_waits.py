"""Waits as the site's own bundle of waits expects them, where one is in use: for requests that come behind the queue.

The bundle is read again when its link moves, the history each RELEARNT_S; between, starts are taken from the queue.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gpuwaste.advice.predict.bundle import WAITS, Registry
from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError, ModelError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.plan.past_run_times import MAX_PAST, PAST_S
from gpuwaste.plan.start_time.correction import WaitShifts
from gpuwaste.plan.start_time.open_waits import OpenWaits
from gpuwaste.plan.waits.features import vector, wait_features
from gpuwaste.plan.waits.instant import JobRows, no_rows
from gpuwaste.plan.waits.knowledge import Knowledge, learnt_of
from gpuwaste.plan.waits.live_rows import LiveRows
from gpuwaste.plan.waits.simulated import simulated
from gpuwaste.plan.waits.trees import WaitTrees, load_trees
from gpuwaste.slurm.clients.scontrol import RunningJob
from gpuwaste.slurm.submit.request import JobRequest
from gpuwaste.store.hub.hub_store import HubStore

RELEARNT_S: Final = 3600
_LOADED: Final = log_event.info("wait-model-loaded: model of waits loaded: {name} {hash}")
_NOT_LOADED: Final = log_event.warning(
    "wait-model-not-loaded: cannot load the model of waits, expected starts are simulated: {error}",
    "`gpuwaste model show --waits` names the problem. `gpuwaste train --waits` makes a new model.",
)
Quantiles = tuple[float, float, float]


class LearntWaits:
    """p10, p50 and p90 of waits in seconds; one thread at a time. `step` before each question."""

    def __init__(self, store: HubStore, models_dir: Path) -> None:
        self._store = store
        self._registry = Registry(models_dir / WAITS, wait_features())
        self._tried: tuple[Path, int] | None = None
        self._trees: WaitTrees | None = None
        self._rows: LiveRows
        self._trouble = RepeatSuppressor()
        self._known = Knowledge()
        self._learnt_at = 0
        self._seen_until = 0
        self._now = 0
        self._running = self._waiting = no_rows()
        self.open = OpenWaits(WaitShifts())

    @property
    def in_use(self) -> bool:
        """Whether there is a bundle."""
        return self._trees is not None

    def step(self, jobs: Mapping[int, RunningJob], now: int) -> None:
        """Take the queue of `now`, and the bundle and the history where they are due. Raises StoreError."""
        self._refresh()
        if self._trees is None or now == self._now:
            return
        if not 0 <= now - self._learnt_at < RELEARNT_S:
            self._learn(now)
        self._running, self._waiting = self._rows.queue({job.job_id: job for job in jobs.values()}.values(), now)
        fresh = (self._running.start > self._seen_until) & (self._running.start < now) & (self._running.pool >= 0)
        self._known.started(self._running.at(fresh))
        self._seen_until = max(self._seen_until, int(self._running.start[fresh].max(initial=0)))
        self._now = now

    def raw(self, requests: Sequence[JobRequest]) -> list[Quantiles | None]:
        """Return what the trees expect of requests submitted now, not corrected; None for an unknown partition.

        Raises ModelError.
        """
        found: list[Quantiles | None] = [None] * len(requests)
        if self._trees is None:
            return found
        asked = self._rows.asked(requests)
        for pool in sorted(set(asked.pool.tolist()) - {-1}):
            own = np.flatnonzero(asked.pool == pool).tolist()
            for row, said in zip(own, self._of_pool(self._trees, pool, asked), strict=True):
                found[row] = said
        return found

    def expected(self, requests: Sequence[JobRequest]) -> list[Quantiles | None]:
        """Return what is expected, corrected by past errors."""
        try:
            raw = self.raw(requests)
        except ModelError as error:
            self._failed(str(error))
            return [None] * len(requests)
        return [None if said is None else _three(self.open.shifts.apply(said)) for said in raw]

    def _of_pool(self, trees: WaitTrees, pool: int, asked: JobRows) -> list[Quantiles]:
        at = self._rows.instant(self._now, pool, self._running, self._waiting, asked)
        hints = simulated(at, self._known.past, trees.machine.draws, 1)
        rows = [vector(at, row, self._known, hint) for row, hint in enumerate(hints)]
        return [_three(said) for said in trees.waits_s(np.array(rows, np.float32)).tolist()]

    def _refresh(self) -> None:
        try:
            found = self._registry.champion()
            tried = None if found is None else (found.resolve(), (found / "manifest.json").stat().st_mtime_ns)
            if tried == self._tried:
                return
            self._tried = tried
            trees = None if found is None else load_trees(found)
            shifts = WaitShifts()
            if trees is not None:
                shifts.unpack(trees.shifts)
        except (GpuwasteError, OSError, ValueError) as error:
            self._failed(str(error))
            return
        self._trees, self.open, self._learnt_at, self._now = trees, OpenWaits(shifts), 0, 0
        self._trouble.over()
        if trees is not None:
            self._rows = LiveRows(trees.machine)
            _LOADED.log(name=trees.bundle.manifest.name, hash=trees.bundle.hash[:12])

    def _learn(self, now: int) -> None:
        with self._store.reader() as db:
            rows = db.rows("runs_started_last", {"since": now - PAST_S, "most": MAX_PAST})
        jobs, ended = self._rows.started(rows)
        ended[ended >= now] = -1
        own = (jobs.pool >= 0) & (jobs.start < now)
        self._known, self._learnt_at = learnt_of(jobs.at(own), ended[own]), now
        self._seen_until = int(jobs.start[own].max(initial=0))

    def _failed(self, words: str) -> None:
        if self._trouble.news(words):
            _NOT_LOADED.log(error=words)


def _three(values: Sequence[float]) -> Quantiles:
    first, middle, last = values
    return (first, middle, last)
