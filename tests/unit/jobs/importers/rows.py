"""Rows of sacct and helpers that the tests of history share."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.jobs.importers.history_store import HistoryStore

COLUMNS = ("JobIDRaw", "JobID", "User", "Submit", "Start", "End", "ElapsedRaw", "State", "JobName", "MaxRSS", "ReqTRES")
T0 = 1_700_000_000


def row(job: int, **changes: object) -> bytes:
    """Return a job's row: it waited 10 s and ran 60 s."""
    at = T0 + job * 100
    values = {
        "JobIDRaw": job, "JobID": job, "User": f"u{job % 3}", "Submit": at, "Start": at + 10, "End": at + 70,
        "ElapsedRaw": 60, "State": "COMPLETED", "JobName": "train", "MaxRSS": "", "ReqTRES": "cpu=4,gres/gpu=1",
    } | changes  # fmt: skip
    return "|".join(str(value) for value in values.values()).encode("utf-8", "surrogateescape") + b"\n"


def step(job: int, rss: str = "5M") -> bytes:
    """Return the row of a job's batch step."""
    return row(job, JobIDRaw=f"{job}.batch", MaxRSS=rss)


def log(path: Path, jobs: Sequence[int], extra: bytes = b"") -> Path:
    """Write a file of jobs with their steps."""
    body = b"".join(itertools.chain.from_iterable((row(job), step(job)) for job in jobs))
    path.write_bytes("|".join(COLUMNS).encode() + b"\n" + body + extra)
    return path


def opened(path: Path, clock: Clock | None = None) -> HistoryStore:
    """Open a store."""
    return HistoryStore.open(path, clock or SystemClock())


def jobs_of(store: HistoryStore) -> list[tuple[Any, ...]]:
    """Return all runs, in a fixed order."""
    return store._db.execute("SELECT * FROM jobs ORDER BY cluster, job_id, run_start").fetchall()
