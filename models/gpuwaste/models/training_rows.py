"""From a table of jobs to the trees' training data: repeats left out, vectors by replay, parts split by time.

Errors name what a log lacks: everything to learn from, or a target's labels. A row of an earlier part whose outcome
became known only after the next part had begun is left out of it: at that moment nobody could have learnt from it
(purging, as in evaluation of time series with overlapping labels).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.targets import BY_NAME, TARGETS, Target, labels
from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.core.errors import ModelError, NoDataError, UsageError
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import Categories, JobTable
from gpuwaste.jobs.history.outcome import Outcome

Rows = NDArray[np.intp]
SHARES: Final = (0.6, 0.1, 0.3)  # train, validation, test
FINAL_SHARE: Final = 0.9  # of the jobs that a shipped model learns from; the rest calibrate it
MIN_ROWS: Final = 50
_NO_STATE: Final = "the log does not say how jobs ended"
_NO_LEDGER: Final = "no job with GPUs has a ledger of their use: agents have to report for some weeks first"
_NO_LABELS: Final = {
    "failure": _NO_STATE,
    "failure_or_cancel": _NO_STATE,
    "timeout": "the log has no run times with time limits",
    "walltime": "the log has no run times",
    "memory": "no job has a MaxRSS: Slurm's JobAcctGatherType is off, or the log leaves steps out",
    "gpu_underused": _NO_LEDGER,
    "gpus_needed": _NO_LEDGER,
}


@dataclass(frozen=True, slots=True)
class HistorySplit:
    """Row numbers of a JobTable, ascending, in three parts that follow each other in time."""

    train: Rows
    validation: Rows
    test: Rows


def split_by_time(table: JobTable, shares: tuple[float, float, float] = SHARES) -> HistorySplit:
    """Cut the table by order of submission. Raises NoDataError below MIN_ROWS rows."""
    n = len(table)
    if n < MIN_ROWS:
        raise NoDataError(f"{n} jobs are too few to train and evaluate on: at least {MIN_ROWS} are needed")
    first, second = int(n * shares[0]), int(n * (shares[0] + shares[1]))
    rows = np.arange(n)
    return HistorySplit(
        known_before(table, rows[:first], int(table.submit[first])),
        known_before(table, rows[first:second], int(table.submit[second])),
        rows[second:],
    )


def final_cut(table: JobTable) -> tuple[Rows, Rows]:
    """Return the rows that a shipped model learns from, and the last ones, which calibrate it."""
    rows, cut = np.arange(len(table)), int(len(table) * FINAL_SHARE)
    return known_before(table, rows[:cut], int(table.submit[cut])), rows[cut:]


def folds_by_time(table: JobTable, rows: Rows, count: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield `count` (learn, judge) pairs whose first part grows: the classical walk forward."""
    edges = np.linspace(0, len(rows), count + 2).astype(int)[1:]
    for cut, end in pairwise(edges):
        if 0 < cut < end:
            yield known_before(table, rows[:cut], int(table.submit[rows[cut]])), rows[cut:end]


def known_before(table: JobTable, rows: Rows, instant: int) -> Rows:
    """Return the rows that had ended by `instant`, UTC seconds."""
    return rows[(table.end[rows] >= 0) & (table.end[rows] <= instant)]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Runs in the order of submission, their vectors float32 [n, F], and the state after all events of the log.

    `repeated` rows are second records of a run and are left out; `earlier` ones are before the requested time, and only
    the vectors use them.
    """

    table: JobTable
    vectors: NDArray[np.float32]
    state: HistoryState
    repeated: int
    earlier: int


def prepare(table: JobTable, where: str, since: int | None = None) -> Prepared:
    """Return the runs submitted at or after `since` (UTC s), with vectors that include the earlier ones.

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
    """Return which rows are the first of their run; repeats have equal submission, job id and start."""
    keys = np.column_stack([table.submit, table.job_id, table.start])
    order = np.lexsort(keys.T[::-1])
    again = (keys[order][1:] == keys[order][:-1]).all(axis=1)
    first = np.ones(len(table), dtype=np.bool_)
    first[order[1:][again]] = False
    return first


def _check(vectors: NDArray[np.float32]) -> None:
    """Reject infinite values: trees cannot learn from them, and they are a defect of a feature."""
    infinite = [feature.name for feature, column in zip(FEATURES, vectors.T, strict=True) if np.isinf(column).any()]
    if infinite:
        raise ModelError(f"features {', '.join(infinite)}: infinite values: a bug in gpuwaste, please report it")


def named_targets(names: Sequence[str]) -> Sequence[Target]:
    """Return the targets of these names in their own order, all of them without names. Raises UsageError."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise UsageError(f"--targets {unknown[0][:40]!r}: known are {', '.join(BY_NAME)}")
    return [target for target in TARGETS if not names or target.name in names]


def require_usable(table: JobTable, where: str) -> None:
    """Raise NoDataError, one line that starts with `where`, for a log that no target can be learnt from."""
    if not _said(table.user) and not _requests(table):
        raise NoDataError(
            f"{where}: has neither users nor requested resources, so there is nothing to predict from: use a log "
            "of accounting"
        )
    if len(table) < MIN_ROWS:
        raise NoDataError(
            f"{where}: {len(table)} jobs are too few to train and evaluate on: at least {MIN_ROWS} are needed"
        )


def reason_of(target: Target, table: JobTable) -> str:
    """Return why there is no label of a target in a log; "" where there are some."""
    return "" if np.isfinite(labels(target.name, table)).any() else _NO_LABELS[target.name]


def warnings_of(table: JobTable) -> list[str]:
    """Return sentences for the card about what makes a log poor training data."""
    found: list[str] = []
    if not _said(table.user):
        found.append("The log names no users: what one user's jobs have in common is lost.")
    elif len(np.unique(table.user.codes)) == 1:
        found.append("All jobs are one user's: intervals by user are points, and nobody else's jobs are known.")
    if not np.isfinite(table.limit_s).any():
        found.append("No job has a time limit: walltimes are not capped, and there is no request to compare with.")
    if not table.wait_known:
        found.append("The log has no waits: the end of a job is taken for its submission plus its run time.")
    if (table.outcome == Outcome.UNKNOWN).all():
        found.append("The log does not say how jobs ended.")
    return found


def _said(texts: Categories) -> bool:
    return bool(np.any([texts.values[code] != "" for code in np.unique(texts.codes)]))


def _requests(table: JobTable) -> bool:
    columns = (table.limit_s, table.cpus, table.nodes, table.mem_b)
    return any(np.isfinite(column).any() for column in columns) or bool((table.gpus > 0).any())
