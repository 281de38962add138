"""The rolling corrections of a bundle: they learn at a job's end from what the bundle predicted at its submission.

Training stores the history and the corrections with the bundle, so that others continue where it stopped.
"""

from pathlib import Path
from typing import Final

import numpy as np

from gpuwaste.advice.predict.bundle import Bundle
from gpuwaste.advice.predict.rolling import Rolling, busy_users
from gpuwaste.advice.predict.targets import OF_THE_LEDGER, labels
from gpuwaste.advice.predict.vectors import vector_of
from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import GpuUse, JobTable, table_of
from gpuwaste.jobs.history.scored_runs import Scores
from gpuwaste.jobs.job_event import RunUse
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import JobRequest

_BUSY: Final = "busy"  # stored with the scores, as it was at the submission
HISTORY: Final = "history.state"
CORRECTIONS: Final = "rolling.npz"
_UNUSABLE: Final = log_event.info("corrections-unusable: saved corrections of the model not used: {error}")


class BundleCorrections:
    """Feeds a Rolling with the runs whose end a follower reports."""

    def __init__(self, bundle: Bundle, rolling: Rolling) -> None:
        self._bundle = bundle
        self._rolling = rolling

    def score(self, state: HistoryState, request: JobRequest) -> Scores:
        """Return the raw output [1 or quantiles] of each model for a request, and whether its user was busy."""
        vector = vector_of(state, request)
        scores = {target: self._bundle.raw(target, vector[None])[0] for target in self._bundle.targets}
        return scores | {_BUSY: busy_users(vector[None], self._bundle.manifest.features).astype(np.float32)}

    def ended(self, scores: Scores, job: JobRecord) -> None:
        """Learn from the end of a job all targets except those of the ledger."""
        self._learn(scores, table_of([job]), frozenset(scores) - OF_THE_LEDGER - {_BUSY})

    def gpu_use(self, scores: Scores, job: JobRecord, use: RunUse, under_use: UnderUse) -> None:
        """Learn the ledger's targets, as far as the ledger answers the bundle's own rule."""
        known = GpuUse(use.used_ratio, use.gpus_active, use.coverage, job.end or 0)
        table = table_of([job], use=[known], under_use=under_use).by_rule(self._bundle.manifest.under_use)
        self._learn(scores, table, frozenset(scores) & OF_THE_LEDGER)

    def _learn(self, scores: Scores, table: JobTable, targets: frozenset[str]) -> None:
        busy = bool(scores[_BUSY][0]) if _BUSY in scores else False
        for target in sorted(targets):
            self._rolling.observe(target, scores[target].tolist(), float(labels(target, table)[0]), busy=busy)


def history_beside(directory: Path) -> HistoryState | None:
    """Return the history that was stored with a bundle, None if there is none. Raises StoreError, ParseError."""
    path = directory / HISTORY
    return HistoryState.load(path) if path.exists() else None


def corrections_of(bundle: Bundle, *newer: Path) -> Rolling:
    """Return the first of `newer` that is of this bundle, else the corrections of training, else of validation."""
    for path in (*newer, bundle.directory / CORRECTIONS):
        if path.exists():
            try:
                return Rolling.load(path, bundle.manifest, bundle.hash)
            except GpuwasteError as error:
                _UNUSABLE.log(error=error)
    return Rolling(bundle.manifest, bundle.hash)
