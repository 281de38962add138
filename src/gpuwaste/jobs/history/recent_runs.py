"""Each user's last submitted runs, with their state (pending, running, ended): kept live, and over a table.

One row per user: a user with many names and sizes does not have more rows than others. Over a table it is the row of
any run's user at the submission.
"""

import struct
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.jobs.history.key_windows import KeyHistory, Positions
from gpuwaste.jobs.history.packed_rows import KEY, NO_ROW, KeyRows
from gpuwaste.jobs.history.table_events import LAST_INSTANT, Events, Kind

RUNS: Final = 16  # submitted runs remembered per user, the newest first
MAX_USERS: Final = 200_000  # above it the users whose last submission is oldest are dropped
ALIKE: Final = ("name", "shape", "exact")  # the codes by which runs are compared: the low 32 bits of these keys' hashes
MOMENTS: Final = ("submit", "start", "end")  # 0 is "not yet"
WORDS: Final = ("job", *MOMENTS, *ALIKE)  # the fields of 32 bits; an empty place has 0 everywhere
RECENT: Final = np.dtype([("key", "<u8"), ("words", "<u4", (len(WORDS), RUNS)), ("outcomes", "u1", (RUNS,))])
MASK: Final = (1 << 32) - 1
MOMENTS_AT: Final = slice(WORDS.index("submit"), WORDS.index("end") + 1)
ALIKE_AT: Final = slice(WORDS.index("name"), len(WORDS))
_WORD: Final = struct.Struct("<I")
_LINE: Final = RUNS * _WORD.size  # bytes of one field
_WORDS_AT: Final = KEY.size
_OUTCOMES_AT: Final = _WORDS_AT + len(WORDS) * _LINE
_NAMES: Final = struct.Struct(f"<{2 * RUNS}I")  # job and submission of each run
_START_AT, _END_AT = (WORDS.index(name) * _LINE for name in ("start", "end"))
CODES: Final = struct.Struct(f"<{len(ALIKE)}I")
Codes = tuple[int, int, int]  # ALIKE's
Times = NDArray[np.int32]
_NEVER: Final = np.iinfo(np.int32).max  # after every event
_BEFORE: Final = -1  # before every event
# One run: its words at the end of the table, and the events after which its start and its end are known.
_RUN: Final = np.dtype(
    [("words", "<u4", (len(WORDS),)), ("started", "<i4"), ("ended", "<i4"), ("outcome", "u1")], align=True
)
_SLOTS: Final = np.arange(1, RUNS + 1)
_JOB, _SUBMIT, _START, _END = (WORDS.index(name) for name in ("job", "submit", "start", "end"))


class HistoryRows(NamedTuple):
    """The history rows of n requests: packed_rows.ROW [n, keys], RECENT [n], and ALIKE's codes uint32 [n, 3]."""

    keys: NDArray[np.void]
    recent: NDArray[np.void]
    codes: NDArray[np.uint32]


class RecentRuns(KeyRows):
    """The rows by the hash of the user. One writer; a reader takes the lock that the writer holds."""

    dtype: ClassVar[np.dtype[Any]] = RECENT
    size: ClassVar[int] = RECENT.itemsize

    def __init__(self, rows: NDArray[np.void] | None = None, max_users: int = MAX_USERS) -> None:
        """Start empty, or with rows (row 0 the empty one) as `used` returned them."""
        self.max_users = max_users
        super().__init__(rows)

    @classmethod
    def blank(cls) -> NDArray[np.void]:
        """Return the row of a user without submissions."""
        return np.zeros((), dtype=RECENT)

    def bytes_of(self, users: Sequence[int]) -> bytes:
        """Return the rows of some users."""
        view, size, find = self.view, self.size, self.find
        return b"".join([view[(at := find(user) * size) : at + size] for user in users])

    def submitted(self, user: int, job_id: int, submit: int, codes: Codes) -> None:
        """Put a run first; the oldest one is dropped."""
        at = self.add(user) * self.size + _WORDS_AT
        view, last = self.view, at + len(WORDS) * _LINE
        view[at + _WORD.size : last] = bytes(view[at : last - _WORD.size])  # the first of each field is written below
        for value in (job_id & MASK, submit, 0, 0, *codes):
            _WORD.pack_into(view, at, value)
            at += _LINE
        view[at : at + RUNS] = b"\0" + bytes(view[at : at + RUNS - 1])
        if len(self) > self.max_users:
            self.bound()

    def started(self, user: int, job_id: int, submit: int, at: int) -> None:
        """Take the start of a run; ignored where it is no longer remembered."""
        if place := self._place(user, job_id, submit):
            row, slot = place
            _WORD.pack_into(self.view, row + _START_AT + slot * _WORD.size, at)

    def ended(self, user: int, job_id: int, submit: int, at: int, outcome: int) -> None:
        """Take the end of a run; ignored where it is no longer remembered."""
        if place := self._place(user, job_id, submit):
            row, slot = place
            _WORD.pack_into(self.view, row + _END_AT + slot * _WORD.size, at)
            self.view[row - _WORDS_AT + _OUTCOMES_AT + slot] = outcome

    def bound(self) -> None:
        """Drop the users whose last submission is oldest, a quarter of them, where there are too many."""
        if len(self) <= self.max_users:
            return
        newest = self.used()["words"][:, WORDS.index("submit"), 0].astype(np.int64)
        newest[NO_ROW] = -1
        count = self.max_users * 3 // 4
        self.keep(np.sort(np.argpartition(-newest, count)[:count]))

    def _place(self, user: int, job_id: int, submit: int) -> tuple[int, int] | None:
        """Return where a run's words begin, and its slot in them."""
        if (row := self.find(user)) == NO_ROW:
            return None
        at = row * self.size + _WORDS_AT
        words = _NAMES.unpack_from(self.view, at)
        job = job_id & MASK
        for slot in range(RUNS):
            if words[slot] == job and words[slot + RUNS] == submit:
                return at, slot
        return None


class RecentHistory:
    """All submissions of a table in the order of `user`, the history by user; each query is one look-up."""

    def __init__(
        self, table: JobTable, events: Events, user: KeyHistory, codes: NDArray[np.uint32], prior: NDArray[np.void]
    ) -> None:
        """Arrange the runs; `codes` are the table's, [n, 3], and `prior` the users' rows before it (RECENT [users])."""
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
        """Add the table's starts and ends to runs that are pending or running in the prior."""
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
    """Return the number of events before each row's submission, and its run (_RUN)."""
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
