"""What plain methods know: a value of each user's earlier jobs, told at their ends and asked at submission."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.roll import SUBMIT, told
from gpuwaste.jobs.history.table import Floats, JobTable

State = tuple[float, ...]


def by_user(table: JobTable, y: Floats, empty: State, after: Callable[[State, float], State]) -> NDArray[np.float64]:
    """Return [n, len(empty)]: each row's user's state at its submission.

    A user starts with `empty`; `after(state, label)` is the state after the end of a job with that label.
    """
    states: dict[int, State] = {}
    found = np.empty((len(table), len(empty)))
    users, labels = table.user.codes.tolist(), y.tolist()
    for kind, row in told(table, np.arange(len(table)), y):
        user = users[row]
        state = states.get(user, empty)
        if kind == SUBMIT:
            found[row] = state
        else:
            states[user] = after(state, labels[row])
    return found
