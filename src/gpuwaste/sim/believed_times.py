"""How long a job is believed to run, from its user's earlier jobs: a quantile of them, or the mean of the last two.

The order is the log's: a job counts from the second in which it ended there; at one instant ends precede submissions.

Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates"
(2007): a job counts from its end on, and for a user with fewer than two ended jobs their limit is used.
"""

from typing import Final

import numpy as np

from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.trace import Ints

LAST: Final = 64  # jobs of a user that are considered
LEAST: Final = 10  # ended jobs of a user before anything is expected of the next
UNKNOWN: Final = -1
ENDLESS: Final = 1 << 40  # seconds: the length of a job that its limit ended; its real length is unknown


def expected(table: JobTable, level: float) -> Ints:
    """Return for each job of a table [n] the quantile of its user's last run times, seconds, UNKNOWN without enough.

    A run that its limit ended counts as ENDLESS, so that a quantile that meets one is no shorter than the limit.
    """
    ran = np.isfinite(table.run_s) & (table.run_s >= 0) & ((table.start >= 0) | ~np.bool_(table.wait_known))
    rows = np.flatnonzero(ran)
    begin = np.where(table.wait_known & (table.start[rows] >= 0), table.start[rows], table.submit[rows])
    lasts = table.run_s[rows].astype(np.int64)
    ends = np.maximum(begin + lasts, table.submit[rows] + 1)  # a job without length is not known at its own submission
    lasts = np.where(table.run_s[rows] >= table.limit_s[rows], ENDLESS, lasts)
    order = np.argsort(ends, kind="stable")
    users = table.user.codes.astype(np.int64)
    return _expected(table.submit, users, ends[order], users[rows][order], lasts[order], level)


@compiled
def _expected(submit: Ints, user: Ints, ends: Ints, ended_user: Ints, lasts: Ints, level: float) -> Ints:
    """Return the quantile of each job; `submit` and `ends` rise."""
    users = user.max() + 1 if len(user) else 0
    kept, counts = np.empty((users, LAST), np.int64), np.zeros(users, np.int64)
    found = np.full(len(submit), UNKNOWN, np.int64)
    known = 0
    for job in range(len(submit)):
        while known < len(ends) and ends[known] <= submit[job]:
            who = ended_user[known]
            kept[who, counts[who] % LAST] = lasts[known]
            counts[who] += 1
            known += 1
        count = min(counts[user[job]], LAST)
        if count >= LEAST:
            ordered = np.sort(kept[user[job], :count])
            found[job] = ordered[max(int(np.ceil(level * count)) - 1, 0)]
    return found


@compiled
def no_runs(user: Ints) -> Ints:
    """Return room for the last two run times of each user, -1 for none."""
    return np.full((user.max() + 1 if len(user) else 0, 2), -1, dtype=np.int64)


@compiled
def ended(runs: Ints, user: int, run: int) -> None:
    """Record a job that has ended."""
    runs[user, 1] = runs[user, 0]
    runs[user, 0] = run


@compiled
def believed_of(runs: Ints, user: int, limit: int) -> int:
    """Return what is believed of a user's job that is submitted now, at least 1 s."""
    if runs[user, 1] < 0:
        return limit
    mean: int = (runs[user, 0] + runs[user, 1]) // 2
    return max(min(mean, limit), 1)
