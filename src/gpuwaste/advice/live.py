"""Live: the state of the cluster's history and the champion model, kept up to date from the store.

Needs the extra `predict` (NumPy, ONNX Runtime): imported only by the thread of `predictions`.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from gpuwaste.advice.adviser import AdviceRequest, Adviser, SubmitAdvice
from gpuwaste.advice.predict.champion import Champion
from gpuwaste.advice.predict.prediction_types import Scored
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError, ParseError, StoreError
from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history.from_store import read_tables
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.run_store import history_events
from gpuwaste.net.snapshot_tar import write_tar
from gpuwaste.store.hub.hub_store import HubStore

PAGE: Final = 500  # events applied at a time: the longest that predictions wait
FAR_BEHIND: Final = 20_000  # beyond this many events the history is replayed in time order instead
SAVE_EVERY_S: Final = 900.0
SNAPSHOT_AGE_S: Final = 60.0  # a saved state younger than this is good enough for a reader that starts from it
STATE_NAME: Final = "history"
ROLLING_NAME: Final = "corrections.npz"
_NOT_SAVED: Final = log_event.warning(
    "hub-history-not-saved: cannot save the state of the job history: {error}",
    "Check the disk and the permissions of `[hub] state_dir`. The next start takes longer.",
)
_REPLAYED: Final = log_event.info("hub-history-replayed: job history replayed: {runs} runs")
_UNUSABLE: Final = log_event.info("hub-history-unusable: saved job history not used, replaying all runs: {error}")


class Live:
    """Answers requests from the runs that ended so far. Call `step` on one thread, `advise` on any."""

    def __init__(self, store: HubStore, cluster: str, models_dir: Path, state_dir: Path, clock: Clock) -> None:
        self.champion = Champion(models_dir, state_dir / ROLLING_NAME)
        self._store = store
        self._cluster = cluster
        self._saved = state_dir / STATE_NAME
        self._clock = clock
        self._saved_at_us: int | None = None
        self._began_us = clock.mono_us()
        self._lock = threading.Lock()
        self._save_lock = threading.Lock()  # held while the saved state is written or read
        self._follower = self._resumed() or self._replayed()
        self._predictor = self.champion.predictor(self._follower)

    @property
    def seq(self) -> int:
        """The last event applied."""
        return self._follower.seq

    @property
    def under_use(self) -> UnderUse:
        """The rule by which the state counts the use of GPUs."""
        return self._follower.state.under_use

    def step(self) -> None:
        """Load a new champion if there is one, and apply the events since the last step. Raises StoreError."""
        if self.champion.refresh():
            with self._lock:
                self._predictor = self.champion.predictor(self._follower)
        if not self._goes_on(self._follower):
            follower = self._replayed()
            with self._lock:
                self._follower = follower
                self._predictor = self.champion.predictor(follower)
            self._saved_at_us = None  # nobody may start from the previous one
        while events := history_events(self._store, self._follower.seq, PAGE):
            with self._lock:
                self._follower.apply(events)
        if self._clock.mono_us() - (self._saved_at_us or self._began_us) >= SAVE_EVERY_S * 1e6:
            self.save()

    def advise(self, adviser: Adviser, asked: AdviceRequest) -> SubmitAdvice:
        """Return the advice with the full prediction; the lock is held only for that. Raises ModelError."""
        with self._lock:
            return replace(adviser, predictor=self._predictor).everything(asked)

    def scored(self, adviser: Adviser, asked: Sequence[AdviceRequest]) -> tuple[list[Scored], str]:
        """Return the predictions for many submissions without reasons, and the model's hash. Raises ModelError."""
        with self._lock:
            return replace(adviser, predictor=self._predictor).scored(asked), self._predictor.model_hash

    def save(self) -> None:
        """Save the state for the next start; if it cannot be saved, the next start replays the history."""
        try:
            with self._save_lock:
                self._save()
        except GpuwasteError as error:
            _NOT_SAVED.log(error=error)

    def snapshot(self, file: BinaryIO) -> None:
        """Write the state of the last minute to `file`, as a tar of what Follower.save writes. Raises StoreError.

        It includes the position in the stream, so that a reader requests the events after it. Predictions go on
        meanwhile.
        """
        with self._save_lock:
            old = self._saved_at_us
            if old is None or self._clock.mono_us() - old >= SNAPSHOT_AGE_S * 1e6:
                self._save()
            write_tar(self._saved, file)

    def _save(self) -> None:
        """Save a copy: predictions wait only while it is copied, not for the disk. Raises StoreError."""
        with self._lock:
            frozen = self._follower.copy()
            self.champion.save()
        self._saved_at_us = self._clock.mono_us()
        frozen.save(self._saved)

    def _resumed(self) -> Follower | None:
        """Return the saved state, if it is of this version and not far behind."""
        if not self._saved.exists():
            return None
        try:
            follower = Follower.load(self._saved, self._cluster, HistoryState.load)
        except (ParseError, StoreError) as error:
            _UNUSABLE.log(error=error)
            return None
        return follower if self._goes_on(follower) else None

    def _goes_on(self, follower: Follower) -> bool:
        """Return whether a state is of this store, not far behind, and counts the use of GPUs by the rule in force."""
        behind = self._store.counts()["last_event"] - follower.seq
        return 0 <= behind <= FAR_BEHIND and follower.state.under_use == self._store.under_use

    def _replayed(self) -> Follower:
        """Return the state after everything in the store, read in tables: a year's runs at once take gigabytes."""
        rule, runs = self._store.under_use, 0
        follower = Follower(HistoryState(under_use=rule), self._cluster)
        with self._store.reader() as db:
            # Without a group of features no vectors are made: those of a million runs would take more than a gigabyte.
            for snapshot in read_tables(db, self._cluster, rule, lambda: follower.state.open):
                follower.state = replay(snapshot.table, follower.state)
                follower.boot(snapshot)
                runs += int(np.count_nonzero(snapshot.table.submit >= snapshot.since))
        for run in VerdictStore(self._store, self._clock).failed_scripts(self._cluster):
            follower.recall.learn_script(*run)
        _REPLAYED.log(runs=runs)
        return follower
