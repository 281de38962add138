"""Each user's last submitted runs over a whole table: the row of any run's user as it was at the submission."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.events import LAST_INSTANT, Events, Kind
from gpuwaste.jobs.history.recent import ALIKE_AT, MASK, MOMENTS_AT, RECENT, RUNS, WORDS
from gpuwaste.jobs.history.table import JobTable
from gpuwaste.jobs.history.windows import KeyHistory, Positions

Times = NDArray[np.int32]
_NEVER: Final = np.iinfo(np.int32).max  # after every event
_BEFORE: Final = -1  # before every event
# One run: its words as at the end of the table, and the events after which its start and its end are known.
_RUN: Final = np.dtype(
    [("words", "<u4", (len(WORDS),)), ("started", "<i4"), ("ended", "<i4"), ("outcome", "u1")], align=True
)
_SLOTS: Final = np.arange(1, RUNS + 1)
_JOB, _SUBMIT, _START, _END = (WORDS.index(name) for name in ("job", "submit", "start", "end"))


class RecentHistory:
    """All submissions of a table in the order of `user`, the history by user; a question is one look-up."""

    def __init__(
        self, table: JobTable, events: Events, user: KeyHistory, codes: NDArray[np.uint32], prior: NDArray[np.void]
    ) -> None:
        """Line the runs up; `codes` are the table's, [n, 3], and `prior` the users' rows before it (RECENT [users])."""
        self._user = user
        self._asked, own = _runs(table, events, codes)
        held = prior["words"][:, _SUBMIT] > 0
        totals = np.concatenate(([0], np.cumsum(np.add.reduce(held, axis=1))))
        self._top, self._first = totals[1:], user.first_sent + totals[:-1]
        self._all = np.zeros(len(user.sent) + totals[-1] + 1, dtype=_RUN)  # the last one is no run
        self._all[np.arange(len(user.sent)) + totals[user.at_submit.codes[user.sent] + 1]] = own[user.sent]
        of_users, slots = np.nonzero(held)
        places = user.first_sent[of_users] + totals[of_users + 1] - 1 - slots
        words = prior["words"][of_users, :, slots]
        self._all["words"][places], self._all["outcome"][places] = words, prior["outcomes"][of_users, slots]
        self._all["started"][places] = np.where(words[:, _START] > 0, _BEFORE, _NEVER)
        self._all["ended"][places] = np.where(words[:, _END] > 0, _BEFORE, _NEVER)
        self._go_on(own, np.flatnonzero(~events.counted))

    def at_submit(self, part: slice) -> NDArray[np.void]:
        """Return the users' rows (RECENT) at the submission of some rows of the table."""
        return self._rows(self._user.at_submit.part(part), self._asked[part])

    def last(self) -> NDArray[np.void]:
        """Return the row of each user after the table; a user without a submission has none."""
        rows = self._rows(self._user.last, np.full(len(self._user.keys), _NEVER, dtype=np.int32))
        return rows[rows["words"][:, _SUBMIT, 0] > 0]

    def _rows(self, at: Positions, now: Times) -> NDArray[np.void]:
        slots = (at.sent_before + self._top[at.codes])[:, None] - _SLOTS
        slots[slots < self._first[at.codes][:, None]] = len(self._all) - 1
        runs = self._all.take(slots)
        begun, done = runs["started"] < now[:, None], runs["ended"] < now[:, None]
        out = np.empty(len(slots), dtype=RECENT)
        out["key"], words = self._user.keys[at.codes], out["words"]
        words[:] = runs["words"].transpose(0, 2, 1)
        words[:, _START] *= begun
        words[:, _END] *= done
        out["outcomes"] = runs["outcome"] * done
        return out

    def _go_on(self, own: NDArray[np.void], rows: NDArray[np.intp]) -> None:
        """Tell of runs that the prior knows as waiting or running what the table says of the rest."""
        codes = self._user.at_submit.codes
        moved = (own["started"] < _NEVER) | (own["ended"] < _NEVER)
        for row in rows[moved[rows]].tolist():
            run, user = own[row], codes[row]
            known = self._all[self._first[user] : self._user.first_sent[user] + self._top[user]]  # of the prior
            same = (known["words"][:, [_JOB, _SUBMIT]] == run["words"][[_JOB, _SUBMIT]]).all(axis=1)
            for place in np.flatnonzero(same).tolist():
                if run["started"] < _NEVER:
                    known["words"][place, _START], known["started"][place] = run["words"][_START], run["started"]
                if run["ended"] < _NEVER:
                    known["words"][place, _END], known["ended"][place] = run["words"][_END], run["ended"]
                    known["outcome"][place] = run["outcome"]


def _runs(table: JobTable, events: Events, codes: NDArray[np.uint32]) -> tuple[Times, NDArray[np.void]]:
    """Return after how many events each row is submitted, and its run (_RUN)."""
    at = np.full((len(Kind), len(table)), _NEVER, dtype=np.int32)
    at[events.kinds, events.jobs] = np.arange(len(events.jobs), dtype=np.int32)
    runs = np.zeros(len(table), dtype=_RUN)
    words = runs["words"]
    words[:, _JOB] = table.job_id & MASK
    words[:, MOMENTS_AT] = np.clip(np.stack((table.submit, table.start, table.end), axis=1), 1, LAST_INSTANT)
    words[:, ALIKE_AT] = codes
    runs["started"], runs["outcome"] = at[Kind.START], table.outcome
    runs["ended"] = np.minimum(at[Kind.END], at[Kind.GONE])
    return at[Kind.SUBMIT], runs
