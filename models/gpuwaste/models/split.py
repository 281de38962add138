"""Splits by time: learn from the past, judge on what came after, never shuffle.

A row of an earlier part whose outcome became known only after the next part had begun is left out of it: at that moment
nobody could have learnt from it (purging, as in evaluation of time series with overlapping labels).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.table import JobTable

Rows = NDArray[np.intp]
SHARES: Final = (0.6, 0.1, 0.3)  # train, validation, test
FINAL_SHARE: Final = 0.9  # of the jobs that a shipped model learns from; the rest calibrate it
MIN_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class HistorySplit:
    """Row numbers of a JobTable, ascending, in three parts that follow each other in time."""

    train: Rows
    validation: Rows
    test: Rows


def split_by_time(table: JobTable, shares: tuple[float, float, float] = SHARES) -> HistorySplit:
    """Cut the table by order of submission; raises NoDataError below MIN_ROWS rows."""
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
    """Yield (learn, judge) pairs whose first part grows: the classical walk forward, `count` of them."""
    edges = np.linspace(0, len(rows), count + 2).astype(int)[1:]
    for cut, end in pairwise(edges):
        if 0 < cut < end:
            yield known_before(table, rows[:cut], int(table.submit[rows[cut]])), rows[cut:end]


def known_before(table: JobTable, rows: Rows, instant: int) -> Rows:
    """Return the rows that had ended by `instant`, UTC seconds."""
    return rows[(table.end[rows] >= 0) & (table.end[rows] <= instant)]
