"""The history of one kind of key over a table: the packed row of each run's key at its submission.

Rows are made from running totals and rates over the table's events, sorted by key.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.history_keys import Hashes
from gpuwaste.jobs.history.job_table import Floats
from gpuwaste.jobs.history.packed_rows import COUNTS, END_0, EWS, INSTANTS, LASTS, PEAKS, RECENT, RING, SENT, empty_row
from gpuwaste.jobs.history.recurrences import BURST_S, COUNT_MAX, RECENT_OF, Rates, after_end, after_ends
from gpuwaste.jobs.history.table_events import RING as RING_ITEM
from gpuwaste.jobs.history.table_events import Events, Kind

Places = NDArray[np.int64]
_FEW: Final = 48  # keys: fewer are processed one by one, as a call on arrays costs more than it saves
_TALLIES: Final = 3
_ENDED, _RUNNING, _QUEUED = (COUNTS.index(name) for name in ("ended", "running", "queued"))
_LAST_SUBMIT, _LAST_FAIL = (INSTANTS.index(name) for name in ("last_submit", "last_fail"))
_PEAK, _STREAK = LASTS.index("peak_1"), RECENT.index("streak")
# What an end, and what a submission, changes in the row of its key.
_LEFT: Final = np.dtype(
    [
        ("ews", "<f8", (len(EWS),)),
        ("fail", "<u4"),
        ("tallies", "<u4", (_TALLIES,)),
        ("peaks", "<f2", (PEAKS,)),
        ("recent", "i1", (len(RECENT),)),
    ]
)
_SENT: Final = np.dtype([("submit", "<u4"), ("amounts", "<f2", (len(SENT),)), ("burst", "<u2")])


def accumulate(first: Any, counts: Any, begin: Floats, failed: Floats, log_run: Floats) -> Floats:
    """Return rates and streak [ends, 5] after each end of ends sorted by key.

    Key i has `counts[i]` ends from `first[i]` on and starts with `begin[i]`. One step takes the next end of every key
    that has one; the few keys with the most ends are finished one by one.
    """
    out = np.empty((len(failed), begin.shape[1]))
    keys = np.argsort(-counts, kind="stable")
    left, begins = counts[keys], first[keys]
    now = begin[keys]
    step = 0
    while (active := int(np.searchsorted(-left, -step, side="left"))) > _FEW:
        ends = begins[:active] + step
        now[:active] = after_ends(now[:active], failed[ends], log_run[ends])
        out[ends] = now[:active]
        step += 1
    for place in range(active):
        ends = slice(int(begins[place]) + step, int(begins[place] + left[place]))
        each = chain.from_iterable(_one_by_one(tuple(now[place].tolist()), failed[ends], log_run[ends]))
        out[ends] = np.fromiter(each, dtype=np.float64).reshape(-1, begin.shape[1])
    return out


def _one_by_one(rates: Rates, failed: Floats, log_run: Floats) -> Iterator[Rates]:
    """Yield rates and streak after each end of one key; no tuple is kept, which halves the time."""
    for bad, run in zip(failed.tolist(), log_run.tolist(), strict=True):
        rates = after_end(*rates, bad, run)
        yield rates


def running_totals(values: NDArray[Any], dtype: type[np.number[Any]]) -> NDArray[Any]:
    """Return running totals over the rows [n + 1, columns], zeros first."""
    totals = np.zeros((len(values) + 1, values.shape[1]), dtype=dtype)
    np.cumsum(values, axis=0, out=totals[1:])
    return totals


def last_marked(marked: NDArray[np.bool_]) -> Places:
    """Return for each index the last marked one up to it, -1 where there is none."""
    return np.maximum.accumulate(np.where(marked, np.arange(len(marked)), -1))


@dataclass(frozen=True, slots=True)
class Positions:
    """Number of events of each kind before some instants, counted over all keys in their sorted order."""

    codes: Places  # the key of each instant, an index into KeyHistory.keys
    before: NDArray[np.int32]  # [Kind, instants]

    @property
    def sent_before(self) -> NDArray[np.int32]:
        """Number of submissions before each instant."""
        before: NDArray[np.int32] = self.before[Kind.SUBMIT]
        return before

    def part(self, rows: slice) -> Self:
        """Return the positions of some of the instants."""
        return type(self)(self.codes[rows], self.before[:, rows])


class KeyHistory:
    """All events of a table sorted by key; `prior` are the keys' rows before the table (ROW [keys]).

    The results of ends and submissions are in arrays, followed by the prior of every key after the last event, so that
    each query is one look-up.
    """

    def __init__(self, keys: Hashes, codes: Places, events: Events, prior: NDArray[np.void]) -> None:
        """Sort and accumulate; `codes` is the key of each row of the table."""
        self.keys, self._events, self._prior = keys, events, prior
        self._sort(codes)
        self._ring_up()
        self._leave()
        self._send()

    def _sort(self, codes: Places) -> None:
        """Sort the events by key (stable within a key) and count them by kind."""
        events = self._events
        bits = max(len(events.jobs), 1).bit_length()
        order = np.sort((codes[events.jobs] << bits) | np.arange(len(events.jobs)))
        groups = np.searchsorted(order, np.arange(len(self.keys) + 1) << bits)
        order &= (1 << bits) - 1
        kinds, jobs = events.kinds[order], events.jobs[order]
        submits = kinds == Kind.SUBMIT
        counted = submits & events.counted[jobs]
        totals = np.zeros((len(Kind), len(order) + 1), dtype=np.int32)
        for kind in Kind:
            chosen = counted if kind == Kind.SUBMIT else kinds == kind
            np.cumsum(chosen.astype(np.int32), out=totals[kind, 1:])
        self._first = totals[:, groups[:-1]]
        self.last = Positions(np.arange(len(self.keys)), totals[:, groups[1:]])
        before = np.empty((len(Kind), len(codes)), dtype=np.int32)
        before[:, jobs[submits]] = totals[:, :-1][:, submits]
        self.at_submit = Positions(codes, before)
        ends = kinds == Kind.END
        self._sent_before = np.concatenate(([0], totals[Kind.SUBMIT, 1:][ends]))
        self._ended, self._sent, self._judged = jobs[ends], jobs[counted], jobs[kinds == Kind.LEDGER]
        gone = jobs[kinds == Kind.GONE]
        self._had_started = [
            running_totals(events.started[left][:, None], np.int32)[:, 0] for left in (self._ended, gone)
        ]

    @property
    def sent(self) -> Places:
        """The rows of the table that count as a submission, sorted by key, within a key in order."""
        rows: Places = self._sent
        return rows

    @property
    def first_sent(self) -> Places:
        """Where in `sent` each key begins."""
        begins: Places = self._first[Kind.SUBMIT]
        return begins

    def _ring_up(self) -> None:
        """Put the remembered runs of all keys into one array, the oldest first, with an empty run at the end."""
        prior, ended, first = self._prior, self._ended, self._first[Kind.END]
        remembered = prior["instants"][:, END_0:] > 0
        held = np.concatenate(([0], np.cumsum(np.add.reduce(remembered, axis=1))))
        self._ring = np.empty(len(ended) + held[-1] + 1, dtype=RING_ITEM)
        self._ring[np.arange(len(ended)) + held[self.at_submit.codes[ended] + 1]] = self._events.ring[ended]
        keys, slots = np.nonzero(remembered)
        places = first[keys] + held[keys + 1] - 1 - slots
        self._ring["end"][places] = prior["instants"][keys, END_0 + slots]
        self._ring["amounts"][places] = prior["amounts"][keys, slots]
        self._ring["outcome"][places] = prior["outcomes"][keys, slots]
        self._ring[-1] = (0, empty_row()["amounts"][0], 0)
        self._ring_top, self._ring_first = held[1:], first + held[:-1]

    def _leave(self) -> None:
        """Compute the state after each end."""
        events, prior, ended = self._events, self._prior, self._ended
        first, count, codes = self._first[Kind.END], len(self._ended), self.at_submit.codes[self._ended]
        left = self._left = np.empty(count + len(self.keys), dtype=_LEFT)
        begin = np.column_stack((prior["ews"].reshape(-1, len(EWS)), prior["recent"][:, _STREAK].astype(np.float64)))
        rates = accumulate(
            first, self.last.before[Kind.END] - first, begin, events.failed[ended], events.log_run[ended]
        )
        left["ews"][:count], left["recent"][:count, _STREAK] = rates[:, :-1], rates[:, -1]
        fails = last_marked(events.failed[ended] == 1.0)
        left["fail"][:count] = np.where(
            fails >= first[codes], events.ring["end"][ended[fails]], prior["instants"][codes, _LAST_FAIL]
        )
        totals = running_totals(events.tallies[ended], np.uint32)
        left["tallies"][:count] = totals[1:] - totals[first[codes]] + prior["counts"][codes, :_TALLIES]
        left["peaks"][:count] = self._peaks(codes)
        recent = running_totals(RECENT_OF[self._ring["outcome"]], np.int32)
        top = np.arange(1, count + 1) + self._ring_top[codes]
        bottom = np.maximum(top - RING, self._ring_first[codes])
        left["recent"][:count, :_STREAK] = recent[top] - recent[bottom]
        left["ews"][count:], left["fail"][count:] = prior["ews"], prior["instants"][:, _LAST_FAIL]
        left["tallies"][count:], left["peaks"][count:] = prior["counts"][:, :_TALLIES], prior["lasts"][:, _PEAK:]
        left["recent"][count:] = prior["recent"]

    def _peaks(self, codes: Places) -> NDArray[np.float16]:
        """Return the last known peaks after each end, the newest first."""
        peaks = self._events.peak[self._ended]
        known = ~np.isnan(peaks)
        totals = running_totals(known[:, None], np.int64)[:, 0]
        new = totals[1:] - totals[self._first[Kind.END][codes]]  # of the table, in this key so far
        out = np.empty((len(codes), PEAKS), dtype=np.float16)
        values = np.concatenate((peaks[known], [np.float16(np.nan)]))
        for place in range(PEAKS):
            at = np.where(new > place, totals[1:] - 1 - place, -1)
            older = self._prior["lasts"][codes, _PEAK + np.clip(place - new, 0, PEAKS - 1)]
            out[:, place] = np.where(at >= 0, values[at], older)
        return out

    def _send(self) -> None:
        """Compute the state after each counted submission: its amounts, and the length of the burst it ends."""
        prior, sent, count = self._prior, self._sent, len(self._sent)
        left = self._sent_left = np.empty(count + len(self.keys), dtype=_SENT)
        left["submit"][:count], left["submit"][count:] = self._events.submit[sent], prior["instants"][:, _LAST_SUBMIT]
        left["amounts"][:count], left["amounts"][count:] = self._events.ring["amounts"][sent, 1:], prior["sent"]
        left["burst"][count:] = prior["bursts"][:, 0]
        at = left["submit"][:count].astype(np.int64)
        starts = self._first[Kind.SUBMIT][self._first[Kind.SUBMIT] < self.last.before[Kind.SUBMIT]]
        codes = self.at_submit.codes[sent[starts]]
        last = np.concatenate(([0], at[:-1]))[:count]
        last[starts] = prior["instants"][codes, _LAST_SUBMIT]
        close = at - last <= BURST_S
        close[starts] &= last[starts] > 0
        carried = np.zeros(count, dtype=np.int64)
        carried[starts] = np.where(close[starts], prior["bursts"][codes, 0], 0)
        begins = ~close
        begins[starts] = True
        began = last_marked(begins)
        left["burst"][:count] = np.minimum(np.arange(count) - began + 1 + carried[began], COUNT_MAX)

    def rows(self, at: Positions, out: NDArray[np.void]) -> NDArray[np.void]:
        """Fill `out` (ROW [instants]) with the keys' rows as they were at the positions, and return it."""
        codes, prior = at.codes, self._prior
        first = self._first[:, codes]
        new = at.before - first
        out["key"] = self.keys[codes]
        self._fill_ends(out, at.before[Kind.END], new[Kind.END], codes)
        had_started = sum(
            totals[at.before[kind]] - totals[first[kind]]
            for kind, totals in zip((Kind.END, Kind.GONE), self._had_started, strict=True)
        )
        gone, counts, before = new[Kind.END] + new[Kind.GONE], out["counts"], prior["counts"][codes]
        counts[:, _ENDED] = before[:, _ENDED] + gone
        counts[:, _RUNNING] = before[:, _RUNNING] + new[Kind.START] - had_started
        counts[:, _QUEUED] = before[:, _QUEUED] + new[Kind.SUBMIT] - new[Kind.START] - gone + had_started
        sent = self._sent_left.take(_place(at.before[Kind.SUBMIT], new[Kind.SUBMIT], len(self._sent), codes))
        out["instants"][:, _LAST_SUBMIT], out["sent"] = sent["submit"], sent["amounts"]
        out["bursts"][:, 0] = sent["burst"]
        since_end = at.before[Kind.SUBMIT] - self._sent_before[at.before[Kind.END]]
        longer = new[Kind.SUBMIT] + prior["bursts"][codes, 1].astype(np.int64)
        out["bursts"][:, 1] = np.minimum(np.where(new[Kind.END] > 0, since_end, longer), COUNT_MAX)
        out["lasts"][:, :_PEAK] = prior["lasts"][codes, :_PEAK]
        if len(self._judged):
            some = new[Kind.LEDGER] > 0
            out["lasts"][some, :_PEAK] = self._events.uses[self._judged[at.before[Kind.LEDGER][some] - 1]]
        return out

    def _fill_ends(self, out: NDArray[np.void], ended: Any, new: Any, codes: Places) -> None:
        left = self._left.take(_place(ended, new, len(self._ended), codes))
        out["ews"], out["recent"], out["counts"][:, :_TALLIES] = left["ews"], left["recent"], left["tallies"]
        out["instants"][:, _LAST_FAIL], out["lasts"][:, _PEAK:] = left["fail"], left["peaks"]
        slots = (ended + self._ring_top[codes])[:, None] - _SLOTS
        slots[slots < self._ring_first[codes][:, None]] = len(self._ring) - 1
        ring = self._ring.take(slots)
        out["instants"][:, END_0:], out["amounts"], out["outcomes"] = ring["end"], ring["amounts"], ring["outcome"]


_SLOTS: Final = np.arange(1, RING + 1)


def _place(before: Any, new: Any, count: int, codes: Places) -> Places:
    """Return the index of the last event before an instant, or of the key's prior where there is none."""
    return np.where(new > 0, before - 1, count + codes)
