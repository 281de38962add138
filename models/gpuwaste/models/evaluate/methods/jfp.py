"""The same model with facts known only after the run: what "predictions" from them look like, for comparison.

Not available at submission. Never our model: it is shown in a separate column, only on request.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.targets import Target
from gpuwaste.jobs.history.job_table import ABSENT, JobTable
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer
from gpuwaste.models.evaluate.methods.model import said

TITLE: Final = "JFP protocol"
ORDER: Final = 90
AFTER_RUN: Final = True


def supports(target: Target) -> bool:
    """Return whether it is an outcome: with the run time known, there is no walltime to predict."""
    return target.name in {"failure", "failure_or_cancel"}


def answer(question: EvaluationTask) -> MethodAnswer:
    """Fit on the vectors plus the facts known after the run."""
    vectors = np.column_stack([question.vectors, after_run(question.table)])
    return said(question.learn_on(vectors), question)


def after_run(table: JobTable) -> NDArray[np.float32]:
    """Return [n, 4]: run seconds, their share of the limit, seconds of waiting, peak memory in bytes."""
    wait = np.where(table.start != ABSENT, table.start - table.submit, np.nan)
    share = table.run_s / np.where(table.limit_s > 0, table.limit_s, np.nan)
    return np.column_stack([table.run_s, share, wait, table.max_rss_b]).astype(np.float32)
