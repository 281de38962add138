"""HistoryState: the current history of a cluster, updated event by event, and the rows of a new request."""

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

import numpy as np

from gpuwaste.core.underuse import UNDER_USE, UnderUse
from gpuwaste.jobs.history.history_keys import KEYS, exact_key, keys_of
from gpuwaste.jobs.history.history_snapshot import OpenRun, encode, read_snapshot, write_snapshot
from gpuwaste.jobs.history.job_table import GpuUse
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.jobs.history.packed_rows import (
    END_0,
    END_AT,
    END_READ,
    END_WRITE,
    GONE,
    GONE_AT,
    HALF,
    KEY,
    LATE,
    ROW,
    SIZE,
    START,
    START_AT,
    SUBMIT,
    SUBMIT_AT,
    USE,
    USE_AT,
    KeyRows,
)
from gpuwaste.jobs.history.recent_runs import ALIKE, CODES, MASK, RECENT, Codes, HistoryRows, RecentRuns
from gpuwaste.jobs.history.recurrences import (
    BURST_S,
    COUNT_MAX,
    FAILED_LIST,
    HALF_MAX,
    PEAK_UNIT_B,
    RECENT_LIST,
    after_end,
    at_limit,
    half,
    log_of,
    minutes,
)
from gpuwaste.slurm.submit.job_request import JobRequest

MAX_KEYS: Final = 2_000_000
MAX_UNJUDGED: Final = 10_000  # ended GPU jobs that wait for the ledger; the oldest are dropped
LAST_INSTANT: Final = (1 << 32) - 1
NAN: Final = float("nan")
_NAMES: Final = [key.name for key in KEYS]
_USER, _NAME, _SHAPE = (_NAMES.index(name) for name in ("user", "name", "shape"))


def clip_instant(at: float) -> int:
    """Return an instant that a row can hold: 1 to 2^32 - 1 seconds (0 is "never")."""
    return min(max(int(at), 1), LAST_INSTANT)


def _codes(keys: Sequence[int]) -> Codes:
    """Return the codes by which a run is compared, from the hashes of KEYS and of EXACT."""
    return keys[_NAME] & MASK, keys[_SHAPE] & MASK, keys[-1] & MASK


class HistoryState:
    """One writer applies the events, any thread may read: a lock prevents reading a half-written row.

    Events are ordered by time, at equal seconds ends, ledger, starts, submissions, then by job id. A run is
    (job_id, submit); the same run submitted twice counts once. `under_use` is the rule by which the GPU use that it
    receives was counted.
    """

    def __init__(
        self,
        max_keys: int = MAX_KEYS,
        keys: KeyRows | None = None,
        under_use: UnderUse = UNDER_USE,
        recent: RecentRuns | None = None,
    ) -> None:
        """Start without history; beyond `max_keys` keys, those that ended longest ago are dropped."""
        self.max_keys, self.under_use = max_keys, under_use
        self.keys = KeyRows() if keys is None else keys
        self.recent = RecentRuns() if recent is None else recent
        self.open: dict[tuple[int, int], OpenRun] = {}
        self.unjudged: dict[tuple[int, int], None] = {}
        self.as_of = 0
        self._lock = threading.Lock()
        self._asked: tuple[JobRequest | None, list[int]] = (None, [])

    def rows_of(self, requests: Sequence[JobRequest]) -> HistoryRows:
        """Return the history rows of the requests, before `submitted` is called for any of them."""
        asked = [self._keys_of(request) for request in requests]
        keys, users = [key for of_one in asked for key in of_one[: len(KEYS)]], [of_one[_USER] for of_one in asked]
        with self._lock:
            view, find = self.keys.view, self.keys.find
            found = b"".join([view[(at := find(key) * SIZE) : at + SIZE] for key in keys])
            recent = self.recent.bytes_of(users)
        codes = b"".join([CODES.pack(*_codes(of_one)) for of_one in asked])
        return HistoryRows(
            np.frombuffer(found, dtype=ROW).reshape(-1, len(KEYS)),
            np.frombuffer(recent, dtype=RECENT),
            np.frombuffer(codes, dtype=np.uint32).reshape(-1, len(ALIKE)),
        )

    def submitted(self, request: JobRequest, job_id: int) -> None:
        """Record a submission."""
        run = (job_id, request.submit)
        if run in self.open:
            return
        now = clip_instant(request.submit)
        limit_s = NAN if request.time_limit_s is None else float(request.time_limit_s)
        limit, cpus = minutes(limit_s), half(request.cpus)
        with self._lock:
            keys = self._keys_of(request)
            rows = tuple([self.keys.add(key) for key in keys[: len(KEYS)]])
            view = self.keys.view
            for row in rows:
                at = row * SIZE + SUBMIT_AT
                queued, burst, waves, _, _, last = SUBMIT.unpack_from(view, at)
                burst = min(burst + 1, COUNT_MAX) if last and now - last <= BURST_S else 1
                SUBMIT.pack_into(view, at, queued + 1, burst, min(waves + 1, COUNT_MAX), limit, cpus, now)
            self.open[run] = OpenRun(rows, cpus, limit_s, half(request.gpus))
            self.recent.submitted(keys[_USER], job_id, now, _codes(keys))
            self.as_of = max(self.as_of, now)
            if len(self.keys) > self.max_keys:
                self._forget()

    def started(self, job_id: int, submit: int, at: int) -> bool:
        """Record a start; return False where this run is not in the system."""
        run = self.open.get((job_id, submit))
        if run is None or run.ended:
            return False
        if not run.started:
            run.started = True
            with self._lock:
                self._count_start(run)
                now = clip_instant(at)
                self.recent.started(self._user_of(run), job_id, clip_instant(submit), now)
                self.as_of = max(self.as_of, now)
        return True

    def ended(  # noqa: PLR0917 the facts of an end
        self, job_id: int, submit: int, at: int, run_s: float | None, outcome: Outcome, max_rss_b: float | None = None
    ) -> bool:
        """Record an end; return False where this run is not in the system."""
        run = self.open.get((job_id, submit))
        if run is None or run.ended:
            return False
        with self._lock:
            end = clip_instant(at)
            self._count_end(
                run, end, NAN if run_s is None else run_s, int(outcome), NAN if max_rss_b is None else max_rss_b
            )
            self.recent.ended(self._user_of(run), job_id, clip_instant(submit), end, int(outcome))
            self.as_of = max(self.as_of, end)
            if run.gpus > 0:
                self.hold((job_id, submit), run)
            else:
                del self.open[job_id, submit]
        return True

    def gpu_use(self, job_id: int, submit: int, use: GpuUse) -> bool:
        """Record the ledger's GPU use of an ended run; return False where no such run waits for it.

        Use with too little coverage of the allocation is skipped: the run keeps waiting.
        """
        run = self.open.get((job_id, submit))
        if run is None or not run.ended:
            return False
        if use.coverage < self.under_use.min_coverage:
            return True
        with self._lock:
            seen = USE.pack(use.used_ratio, half(use.gpus_active), run.gpus)
            for row in run.rows:
                at = row * SIZE + USE_AT
                self.keys.view[at : at + USE.size] = seen
            self.as_of = max(self.as_of, clip_instant(use.known_at))
            del self.open[job_id, submit]
            del self.unjudged[job_id, submit]
        return True

    def _keys_of(self, request: JobRequest) -> list[int]:
        """Return the hashes of KEYS, then of EXACT; `submitted` mostly follows `vector` with the same request."""
        asked, keys = self._asked
        if asked is not request:
            keys = [*keys_of(request), exact_key(request)]
            self._asked = (request, keys)
        return keys

    def _user_of(self, run: OpenRun) -> int:
        """Return the hash of the run's user."""
        return int(KEY.unpack_from(self.keys.view, run.rows[_USER] * SIZE)[0])

    def _count_start(self, run: OpenRun) -> None:
        view = self.keys.view
        for row in run.rows:
            at = row * SIZE + START_AT
            running, queued = START.unpack_from(view, at)
            START.pack_into(view, at, running + 1, queued - 1)

    def _count_end(self, run: OpenRun, end: int, run_s: float, outcome: int, peak_b: float) -> None:
        view, left = self.keys.view, int(run.started)
        run.ended = True
        if outcome == Outcome.NEVER_STARTED:  # no information about a run: it only leaves the queue
            for row in run.rows:
                at = row * SIZE + GONE_AT
                ended, running, queued = GONE.unpack_from(view, at)
                GONE.pack_into(view, at, ended + 1, running - left, queued - 1 + left)
            return
        code = outcome + LATE * at_limit(run_s, run.limit_s)
        failed, log_run = FAILED_LIST[outcome], log_of(run_s)
        new, bad, good, cancelled = RECENT_LIST[code], failed == 1.0, failed == 0.0, outcome == Outcome.CANCELLED
        mine = (minutes(run_s), minutes(run.limit_s), run.cpus)
        peak = HALF.pack(min(max(peak_b / PEAK_UNIT_B, 0.0), HALF_MAX)) if peak_b == peak_b else b""  # noqa: PLR0124 NaN
        for row in run.rows:
            at = row * SIZE + END_AT
            (
                fast, slow, mean, var, n_bad, n_good, n_cancelled, ended, running, queued, burst, _, sent, submit,
                last_bad, ends, amounts, uses, peaks, outcomes, bad_8, good_8, late_8, streak,
            ) = END_READ.unpack_from(view, at)  # fmt: skip
            old = RECENT_LIST[outcomes[-1]]
            *rates, streak = after_end(fast, slow, mean, var, streak, failed, log_run)
            END_WRITE.pack_into(
                view, at, *rates,
                n_bad + bad, n_good + good, n_cancelled + cancelled, ended + 1, running - left, queued - 1 + left,
                burst, 0, sent, submit, end if bad else last_bad, end, ends, *mine, amounts,
                uses, (peak + peaks)[:6], code, outcomes[:-1],
                bad_8 + new[0] - old[0], good_8 + new[1] - old[1], late_8 + new[2] - old[2], int(streak),
            )  # fmt: skip

    def save(self, path: Path, *, still: bool = False) -> None:
        """Write a snapshot atomically: the old file stays intact until the new one is on disk. Raises StoreError.

        `still` means that the caller keeps every writer away until this returns: then nothing is locked or copied.
        """
        with contextlib.nullcontext() if still else self._lock:
            runs = {run: held for run, held in self.open.items() if not held.ended}
            runs |= {run: self.open[run] for run in self.unjudged}  # in the order in which they would be dropped
            parts, as_of = (self.keys.used(), self.recent.used()), self.as_of
            rows, recent = parts if still else (parts[0].copy(), parts[1].copy())
        write_snapshot(path, encode(rows, recent, runs, as_of=as_of, max_keys=self.max_keys, under_use=self.under_use))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a snapshot. Raises StoreError where it cannot be read, ParseError where it is incomplete or invalid."""
        content = read_snapshot(path)
        state = cls(content.max_keys, KeyRows(content.rows), content.under_use, RecentRuns(content.recent))
        state.as_of = content.as_of
        for run, held in content.open:
            state.hold(run, held)
        return state

    def copy(self) -> Self:
        """Return an independent state with the same history."""
        with self._lock:
            recent = RecentRuns(self.recent.used(), self.recent.max_users)
            other = type(self)(self.max_keys, KeyRows(self.keys.used()), self.under_use, recent)
            other.open = {key: replace(run) for key, run in self.open.items()}
            other.unjudged, other.as_of = dict(self.unjudged), self.as_of
        return other

    def bound(self) -> None:
        """Drop the oldest keys where there are more than `max_keys`, and users beyond their own limit."""
        with self._lock:
            self.recent.bound()
            if len(self.keys) > self.max_keys:
                self._forget()

    def hold(self, key: tuple[int, int], run: OpenRun) -> None:
        """Take a run that is in the system, or has ended and waits for the ledger."""
        self.open[key] = run
        if not run.ended:
            return
        self.unjudged[key] = None
        if len(self.unjudged) > MAX_UNJUDGED:
            oldest = next(iter(self.unjudged))
            del self.unjudged[oldest], self.open[oldest]

    def _forget(self) -> None:
        """Keep three quarters of the keys: those of runs in the system, then those with the newest event."""
        rows = self.keys.used()
        newest = np.maximum(rows["instants"][:, 0], rows["instants"][:, END_0]).astype(np.int64)
        for run in self.open.values():
            newest[list(run.rows)] = LAST_INSTANT + 1
        newest[0] = LAST_INSTANT + 2  # the empty row keeps its index
        kept = np.sort(np.argpartition(-newest, self.max_keys * 3 // 4)[: self.max_keys * 3 // 4])
        moved = np.zeros(len(rows), dtype=np.int64)
        moved[kept] = np.arange(len(kept))
        for run in self.open.values():
            run.rows = tuple(moved[list(run.rows)].tolist())
        self.keys.keep(kept[1:])
