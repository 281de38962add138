"""Each user's last submitted runs, one by one, with how far each of them has come: waiting, running or ended.

One row for each user: a user with many names and sizes has no more of them than any other.
"""

import struct
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.packed_rows import KEY, NO_ROW, KeyRows

RUNS: Final = 16  # submitted runs remembered of each user, the newest first
MAX_USERS: Final = 200_000  # above it the users whose last submission is oldest are forgotten
ALIKE: Final = ("name", "shape", "exact")  # what runs are compared by: the low 32 bits of these keys' hashes
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
_START, _END = (WORDS.index(name) * _LINE for name in ("start", "end"))
CODES: Final = struct.Struct(f"<{len(ALIKE)}I")
Codes = tuple[int, int, int]  # ALIKE's


class HistoryRows(NamedTuple):
    """What history knows of n requests: packed_rows.ROW [n, keys], RECENT [n], and ALIKE's codes uint32 [n, 3]."""

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
        """Put a run first; the oldest one goes."""
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
        """Take the start of a run; nothing where it is no longer remembered."""
        if place := self._place(user, job_id, submit):
            row, slot = place
            _WORD.pack_into(self.view, row + _START + slot * _WORD.size, at)

    def ended(self, user: int, job_id: int, submit: int, at: int, outcome: int) -> None:
        """Take the end of a run; nothing where it is no longer remembered."""
        if place := self._place(user, job_id, submit):
            row, slot = place
            _WORD.pack_into(self.view, row + _END + slot * _WORD.size, at)
            self.view[row - _WORDS_AT + _OUTCOMES_AT + slot] = outcome

    def bound(self) -> None:
        """Forget the users whose last submission is oldest, a quarter of them, where there are too many."""
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
