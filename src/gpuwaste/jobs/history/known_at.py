"""A table as it stood at an instant: what came later is not in it."""

from dataclasses import replace

import numpy as np

from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.jobs.history.table import ABSENT, Ints, JobTable


def ends_of(table: JobTable) -> Ints:
    """Return when each run ended, UTC seconds [n]: as replay has it no earlier than it was submitted and started.

    Of a run that has not ended it says nothing.
    """
    return np.maximum(table.end, np.maximum(table.start, table.submit))


def known_at(table: JobTable, at: int) -> JobTable:
    """Return the runs submitted before `at`, UTC seconds, with what was known of them before `at`."""
    t = table.take(np.flatnonzero(table.submit < at))
    started = (t.start != ABSENT) & (t.start < at)
    ended = (t.end != ABSENT) & (ends_of(t) < at)
    judged = ended & (t.ledger_at != ABSENT) & (t.ledger_at < at)
    return replace(
        t,
        start=np.where(started, t.start, ABSENT),
        end=np.where(ended, t.end, ABSENT),
        run_s=np.where(ended, t.run_s, np.nan),
        outcome=np.where(ended, t.outcome, Outcome.UNKNOWN).astype(np.uint8),
        max_rss_b=np.where(ended, t.max_rss_b, np.nan),
        used_ratio=np.where(judged, t.used_ratio, np.nan),
        gpus_active=np.where(judged, t.gpus_active, np.nan),
        gpu_coverage=np.where(judged, t.gpu_coverage, np.nan),
        gpus_used=None if t.gpus_used is None else np.where(judged, t.gpus_used, np.nan),
        ledger_at=np.where(judged, t.ledger_at, ABSENT),
    )
