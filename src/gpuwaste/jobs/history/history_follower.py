"""Follower: keeps the job history up to date from the history stream, for the hub and for the advisor.

Events arrive in the order in which the hub learned them: late, sometimes repeated, sometimes only the end. A run is
(job id, submission): its first event of any kind is its submission, each step counts once, and a step before the one
that was counted last is a repeat. Memory is bounded: runs that are in the system, and the last that ended.
"""

import shutil
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.jobs.history.array_file import read_arrays
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import ABSENT, GpuUse, ends_of
from gpuwaste.jobs.history.outcome import Outcome, outcome_of
from gpuwaste.jobs.history.recall import Recall
from gpuwaste.jobs.history.scored_runs import Corrections, RunId, ScoredRuns, numbers
from gpuwaste.jobs.job_event import HistoryEvent
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import request_of

if TYPE_CHECKING:
    from gpuwaste.jobs.history.from_store import (
        TableSnapshot,  # imports the store's library, which the advisor does not need
    )

MAX_OPEN: Final = 200_000  # runs in the system: above it the one seen first counts as lost
MAX_ENDED: Final = 200_000  # ended runs that are kept to detect repeats and wait for the ledger
_STATE: Final = "state"
_PLACE: Final = "place.npz"
_RECALL: Final = "recall.npy"
_WAITS: Final = 0
_RUNS: Final = 1


class Follower:
    """The state of one cluster's history and its position in the stream. One thread at a time."""

    def __init__(
        self,
        state: HistoryState,
        cluster: str,
        after: int = 0,
        *,
        max_open: int = MAX_OPEN,
        max_ended: int = MAX_ENDED,
    ) -> None:
        self.state = state
        self.recall = Recall()
        self.cluster = cluster
        self.seq = after
        self.counts: Counter[str] = Counter()  # events by how they were handled
        self._max_open, self._max_ended = max_open, max_ended
        self._open: dict[RunId, int] = {}
        # Whether its GPUs' use was counted; not a dict, which finds its first item only after skipping deleted ones.
        self._ended: OrderedDict[RunId, bool] = OrderedDict()
        self._scored = ScoredRuns()
        self._beside = ScoredRuns()  # of a model on trial; not saved: after a restart it learns only from new runs

    def boot(self, snapshot: "TableSnapshot") -> None:
        """Take the runs of a table that `state` has replayed: later events are in the stream.

        There may be several tables in sequence, each with what happened since the one before.
        """
        table = snapshot.table
        self.recall.add(table, snapshot.since)
        self._open.clear()  # runs that are still open are in the newest table
        for row in np.flatnonzero(table.end == ABSENT).tolist():
            self._open[int(table.job_id[row]), int(table.submit[row])] = _RUNS if table.start[row] != ABSENT else _WAITS
        gone = np.flatnonzero(table.end != ABSENT)
        used = table.gpu_coverage >= table.under_use.min_coverage
        told = (
            ends_of(table) < snapshot.since
        )  # had ended in an earlier table: only the use of its GPUs is new since then
        for row in gone[np.argsort(table.end[gone], kind="stable")][-self._max_ended :].tolist():
            run = int(table.job_id[row]), int(table.submit[row])
            if not told[row] or run in self._ended:
                self._ended[run] = bool(used[row])
        while len(self._ended) > self._max_ended:
            self._ended.popitem(last=False)
        self.seq = snapshot.last_event

    def apply(self, events: Iterable[HistoryEvent]) -> None:
        """Take events in the order of the stream; those up to `seq` and of other clusters are skipped."""
        for event in events:
            if event.seq <= self.seq:
                self.counts["repeated"] += 1
                continue
            self.counts[self._take(event)] += 1
            self.seq = event.seq

    def _take(self, event: HistoryEvent) -> str:
        """Apply one event; return how it was handled."""
        job = event.job
        if event.run_key.cluster != self.cluster:
            return "foreign"
        if job is None:
            return "untold"  # accounting has replaced this run: the replacement has its own events
        run = (job.job_id, job.submit)
        if run in self._ended:
            # Everything but the GPU use of an ended run is counted already.
            return "taken" if event.kind == "ledger" and self._use(event, job, run) else "repeated"
        if event.kind == "ledger":
            return "early" if run in self._open else "untold"  # its use is repeated with the end; or long forgotten
        stage = self._open.get(run)
        if stage is None:
            self._submit(job, run)
        if event.kind == "started" and stage != _RUNS:
            self._start(job, run)
        elif event.kind == "ended":
            self._end(event, job, run)
        else:
            return "repeated" if stage is not None else "taken"
        return "taken"

    def _submit(self, job: JobRecord, run: RunId) -> None:
        while len(self._open) >= self._max_open:
            self._lose(next(iter(self._open)), job.submit)
        request = request_of(job)
        for scored in (self._scored, self._beside):
            scored.submitted(self.state, request, run)
        self.state.submitted(request, job.job_id)
        self._open[run] = _WAITS

    def _start(self, job: JobRecord, run: RunId) -> None:
        if job.start is not None:
            self.state.started(*run, job.start)
            self._open[run] = _RUNS

    def _end(self, event: HistoryEvent, job: JobRecord, run: RunId) -> None:
        if self._open[run] != _RUNS:
            self._start(job, run)
        del self._open[run]
        at, outcome = event.at_utc if job.end is None else job.end, outcome_of(job.state, started=job.start is not None)
        self.recall.ended(job, at, outcome, event.script)
        self.state.ended(
            *run,
            at,
            None if job.elapsed_s is None else float(job.elapsed_s),
            outcome,
            max_rss_b=None if job.max_rss_b is None else float(job.max_rss_b),
        )
        self._ended[run] = False
        while len(self._ended) > self._max_ended:
            forgotten, _ = self._ended.popitem(last=False)
            self._scored.forget(forgotten)
            self._beside.forget(forgotten)
        for scored in (self._scored, self._beside):
            scored.ended(run, job)
        self._use(event, job, run)

    def _use(self, event: HistoryEvent, job: JobRecord, run: RunId) -> bool:
        """Count the use of the GPUs once, as soon as its coverage is sufficient."""
        use = event.use
        if use is None or use.coverage < self.state.under_use.min_coverage or self._ended[run]:
            return False
        known_at = max(event.at_utc, event.at_utc if job.end is None else job.end)
        self.state.gpu_use(*run, GpuUse(use.used_ratio, use.gpus_active, use.coverage, known_at))
        self.recall.used(job, use.gpus_active)
        self._ended[run] = True
        for scored in (self._scored, self._beside):
            scored.used(run, job, use, self.state.under_use)
        return True

    def _lose(self, run: RunId, at: int) -> None:
        """Drop a run that accounting no longer reports."""
        self.state.ended(*run, at, None, Outcome.UNKNOWN)
        del self._open[run]
        self._scored.forget(run)
        self._beside.forget(run)
        self.counts["lost"] += 1

    def correct_by(self, corrections: Corrections | None, model: str) -> None:
        """Learn for a model, by its hash: scores of another model for runs in the system are dropped."""
        if model and model == self._beside.model:  # promoted: its scores of the runs in the system are kept
            self._scored, self._beside = self._beside, ScoredRuns()
        self._scored.learn_for(corrections, model)

    def correct_beside(self, corrections: Corrections | None, model: str) -> None:
        """Also learn for a model on trial, by its hash."""
        self._beside.learn_for(corrections, model)

    def copy(self) -> "Follower":
        """Return an independent follower at the same position, without corrections: to save it elsewhere."""
        other = Follower(self.state.copy(), self.cluster, self.seq)
        other.recall = self.recall.copy()
        other._open, other._ended, other._scored = dict(self._open), self._ended.copy(), self._scored.copy()
        return other

    def save(self, directory: Path, *, still: bool = False) -> None:
        """Write state and position to a directory, which is replaced atomically; `still` as in HistoryState.save.

        Raises StoreError.
        """
        fresh, old = directory.with_name(f"{directory.name}.new"), directory.with_name(f"{directory.name}.old")
        try:
            for path in (fresh, old):
                shutil.rmtree(path, ignore_errors=True)
            fresh.mkdir(parents=True, mode=0o700)
            self.state.save(fresh / _STATE, still=still)
            columns: dict[str, Any] = self._columns()
            np.savez(fresh / _PLACE, **columns)
            self.recall.save(fresh / _RECALL)
            if directory.exists():
                directory.rename(old)
            fresh.rename(directory)
            shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            raise StoreError(f"{directory}: the job history cannot be saved: {error.strerror}") from error

    @classmethod
    def load(
        cls, directory: Path, cluster: str, load_state: Callable[[Path], HistoryState], *, max_ended: int = MAX_ENDED
    ) -> Self:
        """Continue where `save` stopped, without corrections. Raises StoreError, ParseError."""
        follower = cls(load_state(directory / _STATE), cluster, max_ended=max_ended)
        follower.recall = Recall.load(directory / _RECALL)
        try:
            saved = read_arrays((directory / _PLACE).read_bytes())
            known = str(saved["cluster"])
            follower.seq = int(saved["seq"])
            follower._open = {(i, s): stage for i, s, stage in saved["open"].tolist()}
            ended = saved["ended"][-max_ended:].tolist()
            follower._ended = OrderedDict(((i, s), bool(used)) for i, s, used in ended)
            follower._scored.restore(saved)
        except OSError as error:
            raise StoreError(f"{directory}: cannot be read: {error.strerror or error}") from error
        except (ParseError, ValueError, TypeError, KeyError, IndexError) as error:
            raise ParseError(f"{directory}: is not a saved job history: remove it, it is loaded again") from error
        if known != cluster:
            raise ParseError(f"{directory}: is the job history of cluster {known[:64]!r}: remove it")
        return follower

    def _columns(self) -> dict[str, NDArray[Any]]:
        return self._scored.columns() | {
            "seq": np.array(self.seq),
            "cluster": np.array(self.cluster),
            "open": numbers(((*run, stage) for run, stage in self._open.items()), 3),
            "ended": numbers(((*run, used) for run, used in self._ended.items()), 3),
        }
