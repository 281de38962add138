"""What a follower of the history stream moves on: the state of past jobs, and what learns from the models' errors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.history import RunUse
from gpuwaste.core.job import JobRecord
from gpuwaste.core.request import JobRequest
from gpuwaste.core.underuse import UnderUse
from gpuwaste.history.outcome import Outcome
from gpuwaste.history.table import GpuUse

RunId = tuple[int, int]  # job id, submit
Scores = Mapping[str, NDArray[np.float32]]  # target -> raw output of its model


class State(Protocol):
    """The part of HistoryState that a follower moves on; the use of GPUs is counted by `under_use`."""

    under_use: UnderUse

    def rows_of(self, requests: Sequence[JobRequest]) -> NDArray[np.void]:
        """Return the rows [n, keys] of the requests' keys."""
        ...

    def submitted(self, request: JobRequest, job_id: int) -> None:
        """Take a submission."""
        ...

    def started(self, job_id: int, submit: int, at: int) -> bool:
        """Take a start."""
        ...

    def ended(
        self,
        job_id: int,
        submit: int,
        at: int,
        run_s: float | None,
        outcome: Outcome,
        *,
        max_rss_b: float | None = None,
    ) -> bool:
        """Take an end."""
        ...

    def gpu_use(self, job_id: int, submit: int, use: GpuUse) -> bool:
        """Take what the ledger says of an ended run."""
        ...

    def copy(self) -> "State":
        """Return a state of its own with the same history."""
        ...

    def save(self, path: Path, *, still: bool = False) -> None:
        """Write the state to a file."""
        ...


class Corrections(Protocol):
    """What learns from the models' own errors: raw scores at the submission meet the outcome at the end."""

    def score(self, state: State, request: JobRequest) -> Scores:
        """Return the raw output of each model for a request that the state does not know yet."""
        ...

    def ended(self, scores: Scores, job: JobRecord) -> None:
        """Compare them with how the run ended."""
        ...

    def gpu_use(self, scores: Scores, job: JobRecord, use: RunUse, under_use: UnderUse) -> None:
        """Compare them with what the ledger says of the ended run, by that rule; comes after `ended`, or never."""
        ...
