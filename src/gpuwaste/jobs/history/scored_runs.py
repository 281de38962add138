"""ScoredRuns: a model's scores of runs at their submission, kept until the corrections have learned from their ends."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.job_event import RunUse
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import JobRequest

RunId = tuple[int, int]  # job id, submit
Scores = Mapping[str, NDArray[np.float32]]  # target -> raw output of its model
_SCORES: Final = "score_"


class Corrections(Protocol):
    """Learns from the models' own errors: compares raw scores at the submission with the outcome at the end."""

    def score(self, state: HistoryState, request: JobRequest) -> Scores:
        """Return the raw output of each model for a request that is not in the state yet."""
        ...

    def ended(self, scores: Scores, job: JobRecord) -> None:
        """Compare them with how the run ended."""
        ...

    def gpu_use(self, scores: Scores, job: JobRecord, use: RunUse, under_use: UnderUse) -> None:
        """Compare them with the ledger's result for the ended run, by that rule; called after `ended`, or never."""
        ...


class ScoredRuns:
    """The scores of one model's runs; without corrections nothing is scored."""

    def __init__(self) -> None:
        self.corrections: Corrections | None = None
        self.model = ""  # the hash of the model whose scores are kept
        self._scores: dict[RunId, Scores] = {}

    def __len__(self) -> int:
        return len(self._scores)

    def learn_for(self, corrections: Corrections | None, model: str) -> None:
        """Learn for a model, by its hash: scores of another model for runs in the system are dropped."""
        self.corrections = corrections
        if model != self.model:
            self._scores.clear()
        self.model = model

    def submitted(self, state: HistoryState, request: JobRequest, run: RunId) -> None:
        """Score a run that is not in the state yet."""
        if self.corrections is not None:
            self._scores[run] = self.corrections.score(state, request)

    def ended(self, run: RunId, job: JobRecord) -> None:
        """Learn from a run's end; the scores of a run with GPUs are kept until their use is known."""
        if self.corrections is not None and run in self._scores:
            self.corrections.ended(self._scores[run], job)
            if not job.gpus:
                del self._scores[run]

    def used(self, run: RunId, job: JobRecord, use: RunUse, under_use: UnderUse) -> None:
        """Learn from the use of a run's GPUs."""
        scores = self._scores.pop(run, None)
        if self.corrections is not None and scores is not None:
            self.corrections.gpu_use(scores, job, use, under_use)

    def forget(self, run: RunId) -> None:
        """Drop a run for which no more events are expected."""
        self._scores.pop(run, None)

    def copy(self) -> "ScoredRuns":
        """Return the scores without the corrections: to save them elsewhere."""
        other = ScoredRuns()
        other.model, other._scores = self.model, dict(self._scores)
        return other

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return what `restore` reads."""
        targets = sorted(next(iter(self._scores.values()), {}))
        scores = {_SCORES + t: np.array([of_run[t] for of_run in self._scores.values()]) for t in targets}
        return scores | {"model": np.array(self.model), "scored": numbers(self._scores, 2)}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Take what `columns` returned. Raises ValueError, TypeError, KeyError, IndexError."""
        self.model = str(saved["model"])
        scores = {name.removeprefix(_SCORES): saved[name] for name in saved if name.startswith(_SCORES)}
        for row, (i, s) in enumerate(saved["scored"].tolist()):
            self._scores[i, s] = {target: values[row] for target, values in scores.items()}


def numbers(rows: Iterable[tuple[int, ...]], width: int) -> NDArray[np.int64]:
    """Return int64 [n, width], number by number: other threads can run while many rows are saved."""
    return np.fromiter((number for row in rows for number in row), dtype=np.int64).reshape(-1, width)
