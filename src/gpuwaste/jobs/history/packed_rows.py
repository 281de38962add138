"""The packed history of keys: one row of 184 bytes per key, found by an open-addressing index."""

import mmap
import struct
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.history_keys import Hashes

# Increase it when a key or the packed state changes; if the meaning of features changes too, also FEATURE_VERSION.
STATE_VERSION: Final = 4
RING: Final = 8  # ended runs remembered individually per key, the newest first
EWS: Final = ("fail_fast", "fail_slow", "run_mean", "run_var")
COUNTS: Final = ("failed", "completed", "cancelled", "ended", "running", "queued")
BURSTS: Final = ("burst", "since_end")  # submissions right after one another; submissions since the last end
SENT: Final = ("limit", "cpus")  # of the last submission: minutes, processors
INSTANTS: Final = ("last_submit", "last_fail", "last_end")  # 0 is "never"; further ends follow the last one
AMOUNTS: Final = ("run", "limit", "cpus")  # of each remembered run: minutes, minutes, processors
LASTS: Final = ("used", "active", "asked", "peak_1", "peak_2", "peak_3")  # last judged run's GPUs; last known peaks
PEAKS: Final = 3
RECENT: Final = ("failed", "completed", "late", "streak")  # among the remembered runs; runs in a row that failed
ROW: Final = np.dtype(
    [
        ("key", "<u8"),
        ("ews", "<f8", (len(EWS),)),
        ("counts", "<u4", (len(COUNTS),)),
        ("bursts", "<u2", (len(BURSTS),)),
        ("sent", "<f2", (len(SENT),)),
        ("instants", "<u4", (len(INSTANTS) - 1 + RING,)),
        ("amounts", "<f2", (RING, len(AMOUNTS))),
        ("lasts", "<f2", (len(LASTS),)),
        ("outcomes", "u1", (RING,)),
        ("recent", "i1", (len(RECENT),)),
    ]
)
SIZE: Final = ROW.itemsize
END_0: Final = INSTANTS.index("last_end")
LATE: Final = 16  # added to an outcome of the ring: the run reached its limit


def _at(name: str, item: int = 0) -> int:
    """Return the offset in a row of an item of one of its fields."""
    return int(ROW.fields[name][1]) + item * ROW[name].base.itemsize if ROW.fields else 0


# The parts of a row that one event rewrites, for struct: far faster on one row than array items.
END_AT: Final = _at("ews")
END_READ: Final = struct.Struct("<4d 6I HH 4s II28s4x 42s6x 6s6s 8s 4b")
END_WRITE: Final = struct.Struct("<4d 6I HH 4s III28s 3e42s 6s6s B7s 4b")
GONE_AT: Final = _at("counts", COUNTS.index("ended"))
GONE: Final = struct.Struct("<III")  # ended, running, queued
START_AT: Final = _at("counts", COUNTS.index("running"))
START: Final = struct.Struct("<II")  # running, queued
SUBMIT_AT: Final = _at("counts", COUNTS.index("queued"))
SUBMIT: Final = struct.Struct("<I HH ee I")  # queued, bursts, sent, last submission
USE_AT: Final = _at("lasts")
USE: Final = struct.Struct("<3e")
HALF: Final = struct.Struct("<e")
KEY: Final = struct.Struct("<Q")
NO_ROW: Final = 0  # the row of a key without history: never written
_STEP: Final = 1 << 16  # rows added when full: untouched pages of new rows take no memory
_LOAD: Final = 0.7


def empty_row() -> NDArray[np.void]:
    """Return the one row of a key without history (a zero-dimensional array)."""
    row = np.zeros((), dtype=ROW)
    for name in ("ews", "sent", "amounts", "lasts"):
        row[name] = np.nan
    return row


class KeyRows:
    """Rows by key. One writer; a row is written by one call of struct under the interpreter's lock.

    A subclass has its own row type: the first field is the key, eight bytes.
    """

    dtype: ClassVar[np.dtype[Any]] = ROW
    size: ClassVar[int] = SIZE

    @classmethod
    def blank(cls) -> NDArray[np.void]:
        """Return the row of an unknown key (a zero-dimensional array)."""
        return empty_row()

    def __init__(self, rows: NDArray[np.void] | None = None) -> None:
        """Start empty, or with rows (row 0 the empty one) as `used` returned them."""
        self.rows = _fresh(_STEP, self.dtype)
        self.count = 0
        self._mask = 0
        self._empty = self.blank().tobytes()
        self._fill(self.blank().reshape(1) if rows is None else rows)

    def __len__(self) -> int:
        return self.count - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in use and of the index."""
        return self.count * self.size + self.index.nbytes

    def used(self) -> NDArray[np.void]:
        """Return a view of the rows in use, the empty one first."""
        return self.rows[: self.count]

    def find(self, key: int) -> int:
        """Return the key's row, NO_ROW where it has none."""
        slots, mask, view, size = self._slots, self._mask, self.view, self.size
        at = key & mask
        while (row := int(slots[at])) and KEY.unpack_from(view, row * size)[0] != key:
            at = (at + 1) & mask
        return row

    def add(self, key: int) -> int:
        """Return the key's row, a new one where it has none."""
        slots, mask, view, size = self._slots, self._mask, self.view, self.size
        at = key & mask
        while row := int(slots[at]):
            if KEY.unpack_from(view, row * size)[0] == key:
                return row
            at = (at + 1) & mask
        if self.count == len(self.rows) or self.count > _LOAD * len(self.index):
            self._grow(self.count + 1)
            return self.add(key)
        row = self.count
        start = row * size
        view[start : start + size] = self._empty
        KEY.pack_into(view, start, key)
        slots[at] = row
        self.count = row + 1
        return row

    def find_all(self, keys: Hashes) -> NDArray[np.int64]:
        """Return the rows of many keys, NO_ROW where there is none: `find` for arrays."""
        mask = np.uint64(self._mask)
        found = np.zeros(len(keys), dtype=np.int64)
        open_ = np.arange(len(keys))
        at = keys & mask
        held = self.rows["key"]
        while len(open_):
            rows = self.index[at[open_]].astype(np.int64)
            done = (rows == NO_ROW) | (held[rows] == keys[open_])
            found[open_[done]] = rows[done]
            open_ = open_[~done]
            at[open_] = (at[open_] + np.uint64(1)) & mask
        return found

    def put_all(self, rows: NDArray[np.void]) -> None:
        """Write full rows by their keys, each once; new keys are added in the order given."""
        at = self.find_all(rows["key"])
        old = at != NO_ROW
        self.rows[at[old]] = rows[old]
        new = rows[~old]
        if len(new):
            self._fill(np.concatenate((self.used(), new)))

    def keep(self, chosen: NDArray[np.int64]) -> None:
        """Drop all rows except those chosen; row numbers change."""
        self._fill(np.concatenate((self.blank().reshape(1), self.rows[chosen])))

    def _grow(self, needed: int) -> None:
        rows = self.used()
        if needed > len(self.rows):
            bigger = _fresh(-(-needed // _STEP) * _STEP, self.dtype)
            bigger[: self.count] = rows
            self.rows = bigger
        self._reindex()

    def _fill(self, rows: NDArray[np.void]) -> None:
        self.count = len(rows)
        if self.count > len(self.rows):
            self.rows = _fresh(-(-self.count // _STEP) * _STEP, self.dtype)
        self.rows[: self.count] = rows
        self._reindex()

    def _reindex(self) -> None:
        """Rebuild the index: at most 0.7 full with one more step of rows."""
        size = 1 << 12
        while _LOAD * size < self.count + 1:
            size *= 2
        self._mask = size - 1
        self.index: NDArray[np.uint32] = _index(self.rows["key"][: self.count], size)
        self._slots: Any = self.index.data
        self.view: Any = self.rows.view(np.uint8).data


def _fresh(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return zeros in pages of their own: freed at once when released, and not allocated before they are written."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, count * dtype.itemsize, flags=private), dtype=dtype)


def _index(keys: Hashes, size: int) -> NDArray[np.uint32]:
    """Return the slots: each key's row is in the first free slot from its hash on; row 0 has no slot."""
    index: NDArray[np.uint32] = _fresh(size, np.dtype(np.uint32))
    for begin in range(1, len(keys), _STEP):  # in parts: the additional memory stays small
        rows = np.arange(begin, min(begin + _STEP, len(keys)))
        at = keys[rows] & np.uint64(size - 1)
        while len(rows):
            free = index[at] == NO_ROW
            index[at[free]] = rows[free]  # of several for one slot the last stays
            lost = index[at] != rows
            rows, at = rows[lost], (at[lost] + np.uint64(1)) & np.uint64(size - 1)
    return index
