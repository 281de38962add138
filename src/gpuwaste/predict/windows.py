"""The history of one kind of key over a whole table: the packed row of any run's key as it was at the submission."""

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.predict.events import RING as RING_ITEM
from gpuwaste.predict.events import Events, Kind
from gpuwaste.predict.keys import Hashes
from gpuwaste.predict.recurrences import BURST_S, RECENT_OF, after_end, after_ends, next_streak
from gpuwaste.predict.rows import COUNTS, END_0, EWS, INSTANTS, LASTS, PEAKS, RECENT, RING, empty_row
from gpuwaste.predict.table import Floats

Places = NDArray[np.int64]
_FEW: Final = 24  # keys: fewer go one by one, where an array's call costs more than it saves
_TALLIES: Final = 3
COUNT_MAX: Final = (1 << 16) - 1
_ENDED, _RUNNING, _QUEUED = (COUNTS.index(name) for name in ("ended", "running", "queued"))
_LAST_SUBMIT, _LAST_FAIL = (INSTANTS.index(name) for name in ("last_submit", "last_fail"))
_PEAK, _STREAK = LASTS.index("peak_1"), RECENT.index("streak")


@dataclass(frozen=True, slots=True)
class Positions:
    """How many events of each kind stand before some instants, counted over all keys in their sorted order."""

    codes: Places  # the key of each instant, a place in KeyHistory.keys
    before: NDArray[np.int64]  # [Kind, instants]

    def part(self, rows: slice) -> Self:
        """Return the positions of some of the instants."""
        return type(self)(self.codes[rows], self.before[:, rows])


class KeyHistory:
    """All events of a table sorted by key; `prior` are the keys' rows before the table (ROW [keys])."""

    def __init__(self, keys: Hashes, codes: Places, events: Events, prior: NDArray[np.void]) -> None:
        """Sort and accumulate; `codes` is the key of each row of the table."""
        self.keys, self._events, self._prior = keys, events, prior
        self._sort(codes)
        self._rate()
        self._burst()

    def _sort(self, codes: Places) -> None:
        """Sort the events by key (in a key they stay in order) and count them by kind."""
        events = self._events
        bits = max(len(events.jobs), 1).bit_length()
        order = np.sort((codes[events.jobs] << bits) | np.arange(len(events.jobs)))
        groups = np.searchsorted(order, np.arange(len(self.keys) + 1) << bits)
        order &= (1 << bits) - 1
        kinds, jobs = events.kinds[order], events.jobs[order]
        submits = kinds == Kind.SUBMIT
        counted = submits & events.counted[jobs]
        totals = np.zeros((len(Kind), len(order) + 1), dtype=np.int64)
        for kind in Kind:
            np.cumsum(counted if kind == Kind.SUBMIT else kinds == kind, out=totals[kind, 1:])
        self._first = totals[:, groups[:-1]]
        self.last = Positions(np.arange(len(self.keys)), totals[:, groups[1:]])
        before = np.empty((len(Kind), len(codes)), dtype=np.int64)
        before[:, jobs[submits]] = totals[:, :-1][:, submits]
        self.at_submit = Positions(codes, before)
        self._sent_before = np.zeros(int(totals[Kind.END, -1]) + 1, dtype=np.int64)
        self._sent_before[1:] = totals[Kind.SUBMIT, 1:][kinds == Kind.END]
        self._ended, self._judged = jobs[kinds == Kind.END], jobs[kinds == Kind.LEDGER]
        self._sent = jobs[counted]
        self._leaving = {Kind.END: self._ended, Kind.GONE: jobs[kinds == Kind.GONE]}
        self._end_codes = codes[self._ended]
        self._send_codes = codes[self._sent]

    def _rate(self) -> None:
        """Compute what each end leaves behind: rates and streak, tallies, last peak, and the ring."""
        events, prior, ended = self._events, self._prior, self._ended
        first, upto = self._first[Kind.END], self.last.before[Kind.END]
        begin = np.column_stack((prior["ews"].reshape(-1, len(EWS)), prior["recent"][:, _STREAK].astype(np.float64)))
        self._rates = accumulate(first, upto - first, begin, events.failed[ended], events.log_run[ended])
        self._tallies = {kind: _totals(events.tallies[jobs]) for kind, jobs in self._leaving.items()}
        peaked = ~np.isnan(events.peak[ended])
        self._peaks = np.concatenate((events.peak[ended][peaked], [np.nan] * PEAKS)).astype(np.float16)
        self._peaked = np.concatenate(([0], np.cumsum(peaked)))
        self._last_fail = _last(events.failed[ended] == 1.0)
        remembered = prior["instants"][:, END_0:] > 0
        held = np.add.reduce(remembered, axis=1)
        self._held = np.concatenate(([0], np.cumsum(held)))
        self._ring = np.empty(len(ended) + self._held[-1] + 1, dtype=RING_ITEM)
        self._ring[np.arange(len(ended)) + self._held[self._end_codes + 1]] = events.ring[ended]
        keys, slots = np.nonzero(remembered)
        places = first[keys] + self._held[keys + 1] - 1 - slots
        self._ring["end"][places] = prior["instants"][keys, END_0 + slots]
        self._ring["amounts"][places] = prior["amounts"][keys, slots]
        self._ring["outcome"][places] = prior["outcomes"][keys, slots]
        self._ring[-1] = (0, empty_row()["amounts"][0], 0)
        self._recent = _totals(RECENT_OF[self._ring["outcome"]].astype(np.int8), np.int32)

    def _burst(self) -> None:
        """Compute the length of the burst that each counted submission ends."""
        prior, sent = self._prior, self._sent
        at = self._events.submit[sent].astype(np.int64)
        first = np.zeros(len(sent), dtype=np.bool_)
        starts = self._first[Kind.SUBMIT][self._first[Kind.SUBMIT] < self.last.before[Kind.SUBMIT]]
        first[starts] = True
        last = np.concatenate(([0], at[:-1]))
        codes = self._send_codes[starts]
        last[starts] = prior["instants"][codes, _LAST_SUBMIT]
        close = at - last <= BURST_S
        close[starts] &= last[starts] > 0
        carried = np.zeros(len(sent), dtype=np.int64)
        carried[starts] = np.where(close[starts], prior["bursts"][codes, 0], 0)
        began = _last(first | ~close)
        self._bursts = np.minimum(np.arange(len(sent)) - began + 1 + carried[began], COUNT_MAX)

    def rows(self, at: Positions) -> NDArray[np.void]:
        """Return the keys' rows (ROW [instants]) as they were at the positions."""
        codes, prior = at.codes, self._prior
        out = prior.take(codes)
        out["key"] = self.keys[codes]
        first = self._first[:, codes]
        self._fill_ends(out, at.before[Kind.END], first[Kind.END], codes)
        counts = out["counts"]
        started = at.before[Kind.START] - first[Kind.START]
        sent = at.before[Kind.SUBMIT]
        left, had_started = np.zeros((2, len(codes)), dtype=np.int64)
        for kind, totals in self._tallies.items():
            added = totals[at.before[kind]] - totals[first[kind]]
            counts[:, :_TALLIES] += added[:, :_TALLIES]
            had_started += added[:, _TALLIES]
            left += at.before[kind] - first[kind]
        counts[:, _ENDED] += left.astype(np.uint32)
        counts[:, _RUNNING] += (started - had_started).astype(np.uint32)  # wraps back where it is negative
        counts[:, _QUEUED] += (sent - first[Kind.SUBMIT] - started - left + had_started).astype(np.uint32)
        some = sent > first[Kind.SUBMIT]
        newest = self._sent[sent[some] - 1]
        out["instants"][some, _LAST_SUBMIT] = self._events.submit[newest]
        out["sent"][some] = self._events.ring["amounts"][newest, 1:]
        out["bursts"][some, 0] = self._bursts[sent[some] - 1]
        ended = at.before[Kind.END]
        earlier = out["bursts"][:, 1] + sent - first[Kind.SUBMIT]
        waves = np.where(ended > first[Kind.END], sent - self._sent_before[ended], earlier)
        out["bursts"][:, 1] = np.minimum(waves, COUNT_MAX)
        judged = at.before[Kind.LEDGER]
        some = judged > first[Kind.LEDGER]
        out["lasts"][some, :_PEAK] = self._events.uses[self._judged[judged[some] - 1]]
        return out

    def _fill_ends(self, out: NDArray[np.void], ended: Places, first: Places, codes: Places) -> None:
        some = np.flatnonzero(ended > first)
        newest = ended[some] - 1
        out["ews"][some] = self._rates[newest, : len(EWS)]
        out["recent"][some, _STREAK] = self._rates[newest, len(EWS)]
        fail = self._last_fail[newest]
        failed = fail >= first[some]
        self._fill_peaks(out["lasts"][:, _PEAK:], self._peaked[ended], self._peaked[first])
        out["instants"][some[failed], _LAST_FAIL] = self._events.ring["end"][self._ended[fail[failed]]]
        top, bottom = ended + self._held[codes + 1], first + self._held[codes]
        bottom = np.maximum(bottom, top - RING)
        out["recent"][:, :_STREAK] = self._recent[top] - self._recent[bottom]
        slots = top[:, None] - 1 - np.arange(RING)
        slots[slots < bottom[:, None]] = len(self._ring) - 1
        ring = self._ring.take(slots)
        out["instants"][:, END_0:], out["amounts"], out["outcomes"] = ring["end"], ring["amounts"], ring["outcome"]

    def _fill_peaks(self, out: NDArray[Any], upto: Places, first: Places) -> None:
        """Put the new peaks before those that `out` has, [instants, 3]."""
        held = out.copy()
        for place in range(PEAKS):
            at = upto - 1 - place
            new = at >= first
            out[new, place] = self._peaks[at[new]]
            old = np.flatnonzero(~new)
            out[old, place] = held[old, place - (upto - first)[old]]


def _totals(values: NDArray[Any], dtype: type[np.number[Any]] = np.uint32) -> NDArray[Any]:
    """Return running totals over the rows, with zeros before the first."""
    totals = np.zeros((len(values) + 1, values.shape[1]), dtype=dtype)
    np.cumsum(values, axis=0, out=totals[1:])
    return totals


def _last(marked: NDArray[np.bool_]) -> Places:
    """Return for each place the last marked one up to it, -1 where there is none."""
    return np.maximum.accumulate(np.where(marked, np.arange(len(marked)), -1))


def accumulate(
    first: Places, counts: Places, begin: Floats, failed: Floats, log_run: Floats
) -> Floats:
    """Return rates and streak [ends, 5] after each end of ends sorted by key.

    Key i has `counts[i]` ends from `first[i]` on and starts with `begin[i]`. One step takes the next end of every key
    that has one; the few keys with the most ends are finished one by one.
    """
    out = np.empty((len(failed), begin.shape[1]))
    keys = np.argsort(-counts, kind="stable")
    left = counts[keys]
    now = begin[keys]
    step = 0
    while (active := int(np.searchsorted(-left, -step, side="left"))) > _FEW:
        ends = first[keys[:active]] + step
        now[:active] = after_ends(now[:active], failed[ends], log_run[ends])
        out[ends] = now[:active]
        step += 1
    for place in range(active):
        ends = slice(int(first[keys[place]]) + step, int(first[keys[place]] + left[place]))
        rates, streak = tuple(now[place, :-1].tolist()), int(now[place, -1])
        values = []
        for bad, run in zip(failed[ends].tolist(), log_run[ends].tolist(), strict=True):
            rates = after_end(*rates, bad, run)
            streak = next_streak(streak, bad)
            values.append((*rates, streak))
        out[ends] = values
    return out
