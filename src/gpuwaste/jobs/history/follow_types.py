"""What a follower of the history stream feeds besides the state of past jobs: what learns from the models' errors."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history.state import HistoryState
from gpuwaste.jobs.job_event import RunUse
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.submit.request import JobRequest

RunId = tuple[int, int]  # job id, submit
Scores = Mapping[str, NDArray[np.float32]]  # target -> raw output of its model


class Corrections(Protocol):
    """What learns from the models' own errors: raw scores at the submission meet the outcome at the end."""

    def score(self, state: HistoryState, request: JobRequest) -> Scores:
        """Return the raw output of each model for a request that the state does not know yet."""
        ...

    def ended(self, scores: Scores, job: JobRecord) -> None:
        """Compare them with how the run ended."""
        ...

    def gpu_use(self, scores: Scores, job: JobRecord, use: RunUse, under_use: UnderUse) -> None:
        """Compare them with what the ledger says of the ended run, by that rule; comes after `ended`, or never."""
        ...
