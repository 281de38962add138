"""What plain methods know of the past: a value of each user's earlier jobs, told at their ends and asked at submission.

At equal seconds an end is told before a submission, but for a run of no length, which ends after its own.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuwaste.history.table import ABSENT, Floats, JobTable

State = tuple[float, ...]
_END, _SUBMIT = 0, 1


def by_user(table: JobTable, y: Floats, empty: State, after: Callable[[State, float], State]) -> NDArray[np.float64]:
    """Return [n, len(empty)]: each row's user's state at its submission.

    A user starts with `empty`; `after(state, label)` is the state after the end of a job with that label.
    """
    states: dict[int, State] = {}
    found = np.empty((len(table), len(empty)))
    users, labels = table.user.codes.tolist(), y.tolist()
    for kind, row in events(table, y):
        user = users[row]
        state = states.get(user, empty)
        if kind == _SUBMIT:
            found[row] = state
        else:
            states[user] = after(state, labels[row])
    return found


def events(table: JobTable, y: Floats) -> list[tuple[int, int]]:
    """Return (kind, row) of all submissions, and of the ends of the rows with a label, in the order of time."""
    rows = np.arange(len(table))
    ended = rows[(table.end != ABSENT) & np.isfinite(y)]
    at = np.concatenate([table.submit, np.maximum(table.end[ended], table.submit[ended])])
    rank = np.concatenate([np.ones(len(rows)), np.where(table.end[ended] <= table.submit[ended], 2, 0)])
    kind = np.repeat([_SUBMIT, _END], [len(rows), len(ended)])
    row = np.concatenate([rows, ended])
    order = np.lexsort((row, rank, at))
    return list(zip(kind[order].tolist(), row[order].tolist(), strict=True))
