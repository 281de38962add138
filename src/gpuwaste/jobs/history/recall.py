"""Recall: each user's last runs by job name, one by one, for sentences with the user's numbers and for script hashes.

The features of a model use counts; a sentence such as "your last 14 jobs named train used 1 of 4 GPUs" needs the runs
themselves. A row of 220 bytes for each (user, normalised name), at most MAX_NAMES of them: 44 MB.
"""

import struct
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.jobs.history.array_file import read_array
from gpuwaste.jobs.history.history_keys import BY_NAME, key_columns, name_key
from gpuwaste.jobs.history.job_table import ABSENT, JobTable, ends_of
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.jobs.history.packed_rows import NO_ROW, KeyRows
from gpuwaste.jobs.job_event import ScriptSays
from gpuwaste.slurm.accounting.job_record import JobRecord

EVER: Final = -(2**53)  # before every instant
RING: Final = 16  # runs remembered per name, the newest first
MAX_NAMES: Final = 200_000
_FAILED: Final = frozenset({int(Outcome.FAILED), int(Outcome.OUT_OF_MEMORY)})
_NEVER: Final = 0xFF  # no run
_UNKNOWN: Final = 0xFFFF  # GPUs that were not measured
_MOST: Final = 0xFFFE
_RUN: Final = struct.Struct("<IIHHB")
_RUN_TYPE: Final = np.dtype([("job", "<u4"), ("script", "<u4"), ("asked", "<u2"), ("active", "<u2"), ("outcome", "u1")])
_ROW: Final = np.dtype([("key", "<u8"), ("at", "<u4"), ("runs", _RUN_TYPE, (RING,))])
_AT: Final = struct.Struct("<I")
_AT_AT: Final = 8
_RUNS_AT: Final = 12
_BYTES: Final = RING * _RUN.size
_SCRIPT_AT: Final = 4  # within a run
_ACTIVE_AT: Final = 10


class OwnRun(NamedTuple):
    """One ended run; `active` are the GPUs that were used, None if not measured; `script` 0 if not known."""

    job_id: int
    script: int
    asked: int
    active: int | None
    outcome: int

    @property
    def failed(self) -> bool:
        """Whether the job failed: FAILED, OUT_OF_MEMORY."""
        return self.outcome in _FAILED


class _Rows(KeyRows):
    """Recall's rows, by key."""

    dtype: ClassVar[np.dtype[Any]] = _ROW
    size: ClassVar[int] = _ROW.itemsize

    @classmethod
    def blank(cls) -> NDArray[np.void]:
        """Return the row of a name without runs."""
        row = np.zeros((), dtype=_ROW)
        row["runs"]["outcome"] = _NEVER
        return row


class Recall:
    """One writer; any thread may read, since a row is read by one copy under the interpreter's lock."""

    def __init__(self, max_names: int = MAX_NAMES, rows: NDArray[np.void] | None = None) -> None:
        self.max_names = max_names
        self.rows: KeyRows = _Rows(rows)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, table: JobTable, max_names: int = MAX_NAMES) -> Self:
        """Return the Recall of a table, without scripts: the same as after its ends one by one."""
        recall = cls(max_names)
        recall.add(table)
        return recall

    def add(self, table: JobTable, since: int = EVER) -> None:
        """Add the table's runs that ended from `since` on, UTC seconds, none of which is known yet.

        For runs that ended before, it adds how many of their GPUs were used, where that was not known.
        """
        ran = (table.end != ABSENT) & (table.outcome != Outcome.NEVER_STARTED)
        new = ran & (ends_of(table) >= since)
        self._use_all(table, np.flatnonzero(ran & ~new & _judged(table)))
        rows = _newest(table, np.flatnonzero(new))
        known = self.rows.rows["runs"][self.rows.find_all(rows["key"])]
        place = np.arange(RING) - np.count_nonzero(rows["runs"]["outcome"] != _NEVER, axis=1)[:, None]
        rows["runs"] = np.where(place < 0, rows["runs"], np.take_along_axis(known, np.maximum(place, 0), axis=1))
        self.rows.put_all(rows)
        self.bound()

    def _use_all(self, table: JobTable, ran: NDArray[np.intp]) -> None:
        keys, active = key_columns(table, (BY_NAME["name"],))[0][ran], np.nan_to_num(table.gpus_active)
        for key, row in zip(keys.tolist(), ran.tolist(), strict=True):
            self._used(key, int(table.job_id[row]), int(active[row]))

    def ended(self, job: JobRecord, at: int, outcome: Outcome, script: str = "") -> None:
        """Take a run's end at UTC second `at`; one that never started does not count. `script` is its hash, hex."""
        if outcome == Outcome.NEVER_STARTED:
            return
        start = self.rows.add(name_key(job.user, job.name)) * _ROW.itemsize
        view, runs = self.rows.view, start + _RUNS_AT
        view[runs + _RUN.size : runs + _BYTES] = bytes(view[runs : runs + _BYTES - _RUN.size])
        _RUN.pack_into(
            view, runs, job.job_id & 0xFFFFFFFF, _short(script), min(job.gpus or 0, _MOST), _UNKNOWN, outcome
        )
        _AT.pack_into(view, start + _AT_AT, min(max(at, 0), (1 << 32) - 1))
        self.bound()

    def used(self, job: JobRecord, active: int) -> None:
        """Take the ledger's result for a run that has ended: how many of its GPUs were used."""
        self._used(name_key(job.user, job.name), job.job_id, active)

    def _used(self, key: int, of_job: int, active: int) -> None:
        row = self.rows.find(key)
        view, runs = self.rows.view, row * _ROW.itemsize + _RUNS_AT
        for at in range(runs, runs + _BYTES if row != NO_ROW else runs, _RUN.size):
            job_id, _, _, known, outcome = _RUN.unpack_from(view, at)
            if outcome != _NEVER and job_id == of_job & 0xFFFFFFFF and known == _UNKNOWN:
                struct.pack_into("<H", view, at + _ACTIVE_AT, min(max(active, 0), _MOST))
                return

    def learn_script(self, user: str, name: str, job_id: int, script: str) -> None:
        """Take the script's hash, hex, of a run that is remembered without it; ignore any other."""
        row = self.rows.find(name_key(user, name))
        view, runs = self.rows.view, row * _ROW.itemsize + _RUNS_AT
        for at in range(runs, runs + _BYTES if row != NO_ROW else runs, _RUN.size):
            known_id, known, _, _, outcome = _RUN.unpack_from(view, at)
            if outcome != _NEVER and known_id == job_id & 0xFFFFFFFF and not known:
                struct.pack_into("<I", view, at + _SCRIPT_AT, _short(script))

    def runs(self, user: str, name: str) -> list[OwnRun]:
        """Return the last runs of this user with this name as normalised by normal_name; the newest first."""
        row = self.rows.find(name_key(user, name))
        if row == NO_ROW:
            return []
        start = row * _ROW.itemsize + _RUNS_AT
        found = _RUN.iter_unpack(bytes(self.rows.view[start : start + _BYTES]))
        return [
            OwnRun(job, script, asked, None if active == _UNKNOWN else active, outcome)
            for job, script, asked, active, outcome in found
            if outcome != _NEVER
        ]

    def script_says(self, user: str, name: str, script: str) -> ScriptSays:
        """Return whether a script, by its hash in hex, is one with which a run of this user and name failed."""
        mine = _short(script)
        failures = {run.script for run in self.runs(user, name) if run.failed and run.script} if mine else set()
        if not failures:
            return "unknown"
        return "same" if mine in failures else "changed"

    def bound(self) -> None:
        """Drop the names whose last run ended longest ago, a quarter of them, where there are too many."""
        if len(self.rows) <= self.max_names:
            return
        at = self.rows.used()["at"].astype(np.int64)
        at[NO_ROW] = -1
        newest = np.argpartition(-at, self.max_names * 3 // 4)[: self.max_names * 3 // 4]
        self.rows.keep(np.sort(newest))

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.max_names, self.rows.used())

    def save(self, path: Path) -> None:
        """Write it to a new file. Raises OSError."""
        np.save(path, self.rows.used())

    @classmethod
    def load(cls, path: Path, max_names: int = MAX_NAMES) -> Self:
        """Read what `save` wrote. Raises StoreError, ParseError."""
        try:
            rows = read_array(path.read_bytes())
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
        except ParseError as error:
            raise ParseError(f"{path}: not a file of saved runs: they are loaded again") from error
        if rows.dtype != _ROW or rows.ndim != 1 or not len(rows):
            raise ParseError(f"{path}: saved runs are of another version: they are loaded again")
        return cls(max_names, rows)


def _judged(table: JobTable) -> NDArray[np.bool_]:
    return (table.gpu_coverage >= table.under_use.min_coverage) & (table.gpus > 0)


def _newest(table: JobTable, ran: NDArray[np.intp]) -> NDArray[np.void]:
    """Return a row for each name of some runs of a table, with the last of them."""
    keys = key_columns(table, (BY_NAME["name"],))[0][ran]
    order = np.lexsort((-table.job_id[ran], -table.end[ran], keys))  # each key's runs together, the newest first
    ran, keys = ran[order], keys[order]
    first = np.flatnonzero(np.concatenate((np.ones(min(len(keys), 1), dtype=np.bool_), keys[1:] != keys[:-1])))
    place = np.arange(len(ran)) - np.repeat(first, np.diff(np.concatenate((first, [len(ran)]))))
    rows = np.repeat(_Rows.blank().reshape(1), len(first))
    rows["key"], rows["at"] = keys[first], np.clip(table.end[ran[first]], 0, (1 << 32) - 1)
    kept = place < RING
    _fill(rows["runs"], np.searchsorted(first, np.flatnonzero(kept), side="right") - 1, place[kept], table, ran[kept])
    return rows


def _fill(
    runs: NDArray[np.void], row: NDArray[np.intp], place: NDArray[np.intp], table: JobTable, ran: NDArray[np.intp]
) -> None:
    """Write runs of a table at their rows and slots."""
    runs["job"][row, place] = (table.job_id[ran] & 0xFFFFFFFF).astype(np.uint32)
    runs["asked"][row, place] = np.clip(np.nan_to_num(table.gpus[ran]), 0, _MOST).astype(np.uint16)
    active = np.clip(np.nan_to_num(table.gpus_active[ran]), 0, _MOST)
    runs["active"][row, place] = np.where(_judged(table)[ran], active, _UNKNOWN).astype(np.uint16)
    runs["outcome"][row, place] = table.outcome[ran]


def _short(script: str) -> int:
    """Return a hash of 64 bits in hex as 32 bits, never 0; 0 for no hash."""
    try:
        whole = int(script, 16) if script else 0
    except ValueError:
        return 0
    return ((whole ^ (whole >> 32)) & 0xFFFFFFFF or 1) if script else 0
