"""From a table of jobs to what trees learn from: repeats left out, vectors by replay, the state after the last job."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.core.errors import ModelError
from gpuwaste.jobs.history.state import HistoryState
from gpuwaste.jobs.history.table import JobTable
from gpuwaste.models.usable import require_usable


@dataclass(frozen=True, slots=True)
class Prepared:
    """Runs in the order of submission, their vectors float32 [n, F], and the state after all events of the log.

    `repeated` rows told a run a second time and are left out; `earlier` ones are before the time asked for, and stand
    behind the vectors alone.
    """

    table: JobTable
    vectors: NDArray[np.float32]
    state: HistoryState
    repeated: int
    earlier: int


def prepare(table: JobTable, where: str, since: int | None = None) -> Prepared:
    """Return the runs submitted at or after `since` (UTC s), with vectors that know the earlier ones.

    Raises NoDataError where nothing can be learnt from them.
    """
    kept = _first_told(table)
    runs = table if kept.all() else table.take(np.flatnonzero(kept))
    require_usable(runs, where)
    told = replay_vectors(runs)
    _check(told.vectors)
    first = 0 if since is None else int(np.searchsorted(runs.submit, since))
    vectors = told.vectors
    if first:
        runs, vectors = runs.take(np.arange(first, len(runs))), vectors[first:]
        require_usable(runs, f"{where} since then")
    return Prepared(runs, vectors, told.state, int((~kept).sum()), first)


def _first_told(table: JobTable) -> NDArray[np.bool_]:
    """Tell which rows are the first of their run; equal ones are neighbours but for their order by start."""
    keys = np.column_stack([table.submit, table.job_id, table.start])
    order = np.lexsort(keys.T[::-1])
    again = (keys[order][1:] == keys[order][:-1]).all(axis=1)
    first = np.ones(len(table), dtype=np.bool_)
    first[order[1:][again]] = False
    return first


def _check(vectors: NDArray[np.float32]) -> None:
    """Refuse infinite values: trees cannot learn from them, and they are a defect of a feature."""
    infinite = [feature.name for feature, column in zip(FEATURES, vectors.T, strict=True) if np.isinf(column).any()]
    if infinite:
        raise ModelError(f"features {', '.join(infinite)}: infinite values: a bug in gpuwaste, please report it")
