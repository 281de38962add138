"""The events of a table in the order of the history stream: what each run adds, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.units import MINUTE_S
from gpuwaste.jobs.history.job_table import ABSENT, Floats, Ints, JobTable
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.jobs.history.packed_rows import AMOUNTS, LATE
from gpuwaste.jobs.history.recurrences import FAILED_OF, HALF_MAX, NEAR_LIMIT, PEAK_UNIT_B, logs_of

Bools = NDArray[np.bool_]
LAST_INSTANT: Final = (1 << 32) - 1


class Kind(IntEnum):
    """What happens to a run. GONE is the end of one that was cancelled before its start."""

    END = 0
    GONE = 1
    LEDGER = 2
    START = 3
    SUBMIT = 4


# The order at equal seconds. Events of a run in the second of its start or submission follow the start or submission.
_SUBMIT: Final = 5
_RANK: Final = {Kind.END: 0, Kind.GONE: 0, Kind.LEDGER: 1, Kind.START: 2, Kind.SUBMIT: _SUBMIT}
_RANK_AT_START: Final = {**_RANK, Kind.END: 3, Kind.LEDGER: 4}
_RANK_AT_SUBMIT: Final = {**_RANK, Kind.START: 6, Kind.END: 7, Kind.GONE: 7, Kind.LEDGER: 8}
_RANKS: Final = 16
RING: Final = np.dtype([("end", "<u4"), ("amounts", "<f2", (len(AMOUNTS),)), ("outcome", "u1")])


@dataclass(frozen=True, slots=True)
class Known:
    """Which of a table's runs an earlier state has seen, and which of their events: booleans [n]."""

    submitted: Bools
    started: Bools
    ended: Bools

    @classmethod
    def of(cls, table: JobTable, runs: Mapping[tuple[int, int], Any]) -> Self:
        """Look up the runs; a run that is in the table twice counts as known the second time."""
        flags = np.zeros((3, len(table)), dtype=np.bool_)
        if runs:
            pairs = zip(table.job_id.tolist(), table.submit.tolist(), strict=True)
            for place, pair in enumerate(pairs):
                if (run := runs.get(pair)) is not None:
                    flags[:, place] = (True, run.started, run.ended)
        return cls(*flags)


@dataclass(frozen=True, slots=True)
class Events:
    """The events in order, `kinds` and `jobs` (rows of the table), and for each row of the table what its end adds.

    `counted` are the rows that count as a submission of their own; a repeated row only gets a vector.
    """

    kinds: NDArray[np.uint8]
    jobs: NDArray[np.int64]
    counted: Bools
    submit: NDArray[np.uint32]
    ring: NDArray[np.void]
    failed: Floats
    log_run: Floats
    peak: NDArray[np.float16]
    tallies: NDArray[np.uint32]  # [n, 3]: what an end adds to failed, completed, cancelled
    uses: NDArray[np.float16]
    started: Bools
    ended: Bools
    judged: Bools
    as_of: int


def events_of(table: JobTable, known: Known) -> Events:
    """Return the events of a table that `known` has not seen."""
    first = _first(table)
    submit = np.clip(table.submit, 1, LAST_INSTANT)
    has_start, has_end = table.start != ABSENT, table.end != ABSENT
    gone = table.outcome == Outcome.NEVER_STARTED
    known_use = table.gpu_coverage >= table.under_use.min_coverage
    has_ledger = has_end & (table.ledger_at != ABSENT) & (table.gpus > 0) & known_use
    start = np.maximum(table.start, submit)
    end = np.maximum(table.end, np.where(has_start, start, submit))
    ledger = np.maximum(table.ledger_at, end)
    happens = {
        Kind.END: (end, first & has_end & ~gone & ~known.ended),
        Kind.GONE: (end, first & has_end & gone & ~known.ended),
        Kind.LEDGER: (ledger, first & has_ledger),
        Kind.START: (start, first & has_start & ~known.started & ~known.ended),
        Kind.SUBMIT: (submit, np.ones(len(table), dtype=np.bool_)),
    }
    kinds, jobs = _ordered(table, submit, start, happens)
    latest = [int(np.clip(at[chosen], 1, LAST_INSTANT).max()) for at, chosen in happens.values() if chosen.any()]
    return Events(
        kinds=kinds,
        jobs=jobs,
        counted=first & ~known.submitted,
        submit=submit.astype(np.uint32),
        started=has_start | known.started,
        ended=has_end | known.ended,
        judged=has_ledger,
        as_of=max(latest, default=0),
        **_additions(table),
    )


def _first(table: JobTable) -> Bools:
    """Return which rows are the first of their run; repeats are adjacent in a sorted table."""
    first = np.ones(len(table), dtype=np.bool_)
    first[1:] = (table.submit[1:] != table.submit[:-1]) | (table.job_id[1:] != table.job_id[:-1])
    return first


def _ordered(
    table: JobTable, submit: Ints, start: Ints, happens: Mapping[Kind, tuple[Ints, Bools]]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return kinds and rows by (time, rank, job id, submission)."""
    by_id = np.lexsort((table.submit, table.job_id))
    times, kinds, jobs = [], [], []
    for kind, (at, chosen) in happens.items():
        rows = by_id[chosen[by_id]]
        when = at[rows]
        rank = np.where(when == start[rows], _RANK_AT_START[kind], _RANK[kind])
        rank = np.where(when == submit[rows], _RANK_AT_SUBMIT[kind], rank)
        times.append(when * _RANKS + rank)
        kinds.append(np.full(len(rows), kind, dtype=np.uint8))
        jobs.append(rows)
    order = np.argsort(np.concatenate(times), kind="stable")
    return np.concatenate(kinds)[order], np.concatenate(jobs)[order]


def _additions(table: JobTable) -> dict[str, Any]:
    """Return what the end of each row adds to the history of its keys."""
    with np.errstate(invalid="ignore"):
        failed = FAILED_OF[table.outcome]
        late = (table.run_s >= NEAR_LIMIT * table.limit_s) | (table.run_s >= table.limit_s - MINUTE_S)
        ring = np.zeros(len(table), dtype=RING)
        ring["end"] = np.clip(table.end, 1, LAST_INSTANT)
        ring["outcome"] = table.outcome + late * np.uint8(LATE)
        for place, amount in enumerate((table.run_s / MINUTE_S, table.limit_s / MINUTE_S, table.cpus)):
            ring["amounts"][:, place] = np.clip(amount, 0.0, HALF_MAX)
        tallies = np.stack((failed == 1.0, failed == 0.0, table.outcome == Outcome.CANCELLED), axis=1)
        uses = np.empty((len(table), 3), dtype=np.float16)
        for place, use in enumerate((table.used_ratio, table.gpus_active, table.gpus)):
            uses[:, place] = np.clip(use, 0.0, HALF_MAX)
        return {
            "ring": ring,
            "failed": failed,
            "log_run": logs_of(table.run_s),
            "peak": np.clip(table.max_rss_b / PEAK_UNIT_B, 0.0, HALF_MAX).astype(np.float16),
            "tallies": tallies.astype(np.uint32),
            "uses": uses,
        }
