"""The history of one kind of key over a whole table: the packed row of any run's key as it was at the submission."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.predict.events import RING as RING_ITEM
from gpuwaste.predict.events import Events, Kind
from gpuwaste.predict.keys import Hashes
from gpuwaste.predict.recurrences import BURST_S, after_end, after_ends, next_streak
from gpuwaste.predict.rows import COUNTS, EWS, RING, ROW, empty_row
from gpuwaste.predict.table import Floats

Places = NDArray[np.int64]
BURST_MAX: Final = 65535
_FEW: Final = 24  # keys: fewer go one by one, where an array's call costs more than it saves
_TALLIES: Final = 6
_STARTED, _SUBMITTED, _LAST = (COUNTS.index(name) for name in ("started", "submitted", "last_submit"))


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
        self._ended, self._judged = jobs[kinds == Kind.END], jobs[kinds == Kind.LEDGER]
        self._sent, self._gone = jobs[counted], jobs[kinds == Kind.GONE]
        self._end_codes = codes[self._ended]
        self._send_codes = codes[self._sent]

    def _rate(self) -> None:
        """Compute what each end leaves behind: rates and streak, tallies, last peak, and the ring."""
        events, prior, ended = self._events, self._prior, self._ended
        first, upto = self._first[Kind.END], self.last.before[Kind.END]
        begin = np.column_stack((prior["ews"].reshape(-1, len(EWS)), prior["streak"].astype(np.float64)))
        facts = (events.failed[ended], events.log_run[ended], events.log_peak[ended])
        self._rates = accumulate(first, upto - first, begin, *facts)
        self._tallies = np.zeros((len(ended) + 1, _TALLIES), dtype=np.uint32)
        np.cumsum(events.tallies[ended], axis=0, out=self._tallies[1:])
        self._gone_tallies = np.zeros((len(self._gone) + 1, 2), dtype=np.uint32)
        np.cumsum(events.tallies[self._gone][:, :2], axis=0, out=self._gone_tallies[1:])
        self._peak_at = np.maximum.accumulate(
            np.where(np.isnan(events.peak[ended]), -1, np.arange(len(ended))), dtype=np.int64
        )
        held = np.add.reduce(prior["ends"] > 0, axis=1)
        self._held = np.concatenate(([0], np.cumsum(held)))
        self._ring = np.empty(len(ended) + self._held[-1] + 1, dtype=RING_ITEM)
        self._ring[np.arange(len(ended)) + self._held[self._end_codes + 1]] = events.ring[ended]
        keys, slots = np.nonzero(prior["ends"] > 0)
        places = first[keys] + self._held[keys + 1] - 1 - slots
        for name, field in (("end", "ends"), ("amounts", "amounts"), ("outcome", "outcomes")):
            self._ring[name][places] = prior[field][keys, slots]
        nothing = empty_row()
        self._ring[-1] = (0, nothing["amounts"][0], 0)

    def _burst(self) -> None:
        """Compute the length of the burst that each counted submission ends."""
        prior, sent = self._prior, self._sent
        at = self._events.submit[sent].astype(np.int64)
        first = np.zeros(len(sent), dtype=np.bool_)
        starts = self._first[Kind.SUBMIT][self._first[Kind.SUBMIT] < self.last.before[Kind.SUBMIT]]
        first[starts] = True
        last = np.concatenate(([0], at[:-1]))
        codes = self._send_codes[starts]
        last[starts] = prior["counts"][codes, _LAST]
        close = at - last <= BURST_S
        close[starts] &= prior["counts"][codes, _SUBMITTED] > 0
        carried = np.zeros(len(sent), dtype=np.int64)
        carried[starts] = np.where(close[starts], prior["burst"][codes], 0)
        begins = first | ~close
        began = np.maximum.accumulate(np.where(begins, np.arange(len(sent)), 0), dtype=np.int64)
        lengths = np.arange(len(sent)) - began + 1 + carried[began]
        self._bursts = np.minimum(lengths, BURST_MAX)

    def rows(self, at: Positions) -> NDArray[np.void]:
        """Return the keys' rows (ROW [instants]) as they were at the positions."""
        codes, prior = at.codes, self._prior
        out = prior.take(codes)
        out["key"] = self.keys[codes]
        first = self._first[:, codes]
        self._fill_ends(out, at.before[Kind.END], first[Kind.END], codes)
        counts = out["counts"]
        gone = self._gone_tallies[at.before[Kind.GONE]] - self._gone_tallies[first[Kind.GONE]]
        counts[:, :2] += gone
        counts[:, _STARTED] += (at.before[Kind.START] - first[Kind.START]).astype(np.uint32)
        sent = at.before[Kind.SUBMIT]
        counts[:, _SUBMITTED] += (sent - first[Kind.SUBMIT]).astype(np.uint32)
        some = sent > first[Kind.SUBMIT]
        counts[some, _LAST] = self._events.submit[self._sent[sent[some] - 1]]
        out["burst"][some] = self._bursts[sent[some] - 1]
        judged = at.before[Kind.LEDGER]
        some = judged > first[Kind.LEDGER]
        out["uses"][some] = self._events.uses[self._judged[judged[some] - 1]]
        return out

    def _fill_ends(self, out: NDArray[np.void], ended: Places, first: Places, codes: Places) -> None:
        some = ended > first
        newest = ended[some] - 1
        out["ews"][some] = self._rates[newest, : len(EWS)]
        out["streak"][some] = self._rates[newest, len(EWS)]
        out["counts"][:, :_TALLIES] += self._tallies[ended] - self._tallies[first]
        peak = self._peak_at[newest]
        known = peak >= first[some]
        out["peak"][np.flatnonzero(some)[known]] = self._events.peak[self._ended[peak[known]]]
        top = ended + self._held[codes + 1]
        slots = top[:, None] - 1 - np.arange(RING)
        slots[slots < (first + self._held[codes])[:, None]] = len(self._ring) - 1
        ring = self._ring.take(slots)
        out["ends"], out["amounts"], out["outcomes"] = ring["end"], ring["amounts"], ring["outcome"]


def accumulate(
    first: Places, counts: Places, begin: Floats, failed: Floats, log_run: Floats, log_peak: Floats
) -> Floats:
    """Return rates and streak [ends, 6] after each end of ends sorted by key.

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
        now[:active] = after_ends(now[:active], failed[ends], log_run[ends], log_peak[ends])
        out[ends] = now[:active]
        step += 1
    for place in range(active):
        ends = slice(int(first[keys[place]]) + step, int(first[keys[place]] + left[place]))
        rates, streak = tuple(now[place, :-1].tolist()), int(now[place, -1])
        values = []
        for bad, run, peak in zip(failed[ends].tolist(), log_run[ends].tolist(), log_peak[ends].tolist(), strict=True):
            rates = after_end(rates, bad, run, peak)
            streak = next_streak(streak, bad)
            values.append((*rates, streak))
        out[ends] = values
    return out


def empty_prior(count: int) -> NDArray[np.void]:
    """Return the rows of keys that have no history."""
    rows = np.empty(count, dtype=ROW)
    rows[:] = empty_row()
    return rows
