"""Figure: a million jobs from the store to a training table and to the state of predictions (--home DIR: a kept year).

The jobs are those of bench.report, with the events that an import tells of them, or those of the store that bench.year
keeps in `--home`. Each step is timed in a child process, with the peak of its resident memory up to then: all runs at
once, as training reads them, and in another process in tables, as a hub reads them that starts. Prints a table, then
one line of JSON.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from bench.report import fill
from bench.year import MEMORY_MB
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.history.from_store import read_table, read_tables
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.run_store import history_events
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.process_memory import peak_rss_b

PAGE: Final = 10_000
T = TypeVar("T")
_EVENTS: Final = """
INSERT INTO events (kind, cluster, job_id, run_start, at_utc)
SELECT * FROM (
    SELECT 'started', cluster, job_id, run_start, "start" AS at_utc FROM jobs
    UNION ALL SELECT 'ended', cluster, job_id, run_start, "end" FROM jobs WHERE "end" IS NOT NULL
    UNION ALL SELECT 'ledger', cluster, job_id, run_start, "end" + 60 FROM jobs WHERE "end" IS NOT NULL
) ORDER BY at_utc
"""


def main() -> int:
    """Fill a store unless one is given, measure in fresh processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--home", type=Path, help="directory in which bench.year has kept a store")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        counts: dict[str, Any] = {}
        if options.home is None:
            path = Path(folder) / "hub.duckdb"
            counts = fill(path, options.jobs)
            db = Database.open(path, "hub")
            db.execute(_EVENTS)
            db.execute("CHECKPOINT")
            db.close()
        else:
            path = options.home / "state" / "hub.duckdb"
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            figures = pool.apply(at_once, (path,)) | pool.apply(in_tables, (path,))
    print(json.dumps({"bench": "table", **counts, **figures}))
    return 0


def timed(figures: dict[str, Any], name: str, work: Callable[[], T]) -> T:
    """Do something, print what it cost and note it."""
    began, busy = time.perf_counter(), time.process_time()
    result = work()
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - busy
    peak_mb = peak_rss_b(os.getpid()) / 1e6
    print(f"{name:<24}{seconds:8.2f} s{cpu_s:8.2f} s of CPU{peak_mb:8.0f} MB at most so far", flush=True)
    figures[name] = {"s": round(seconds, 3), "cpu_s": round(cpu_s, 3), "peak_rss_mb": round(peak_mb)}
    return result


def at_once(path: Path) -> dict[str, Any]:
    """Time each step with all runs of the store at `path` at once; DuckDB takes what it needs."""
    figures: dict[str, Any] = {}
    store = HubStore.open(path, SystemClock())
    last = store.counts()["last_event"]
    timed(figures, "history_page_first", lambda: history_events(store, 0, PAGE))
    events = timed(figures, "history_page_last", lambda: history_events(store, last - PAGE, PAGE))
    with store.reader() as db:
        snapshot = timed(figures, "read_table", lambda: read_table(db, "bench", store.under_use))
    store.close()
    follower = Follower(timed(figures, "replay_state", lambda: replay(snapshot.table)), "bench")
    timed(figures, "boot", lambda: follower.boot(snapshot))
    follower.seq = last - PAGE
    follower._ended.clear()  # noqa: SLF001 as if these had not been told
    timed(figures, "follow_page", lambda: follower.apply(events))
    return figures


def in_tables(path: Path) -> dict[str, Any]:
    """Time a hub's way to the same state."""
    figures: dict[str, Any] = {}
    store = HubStore.open(path, SystemClock(), MEMORY_MB)
    follower = Follower(HistoryState(under_use=store.under_use), "bench")

    def told() -> int:
        runs = 0
        with store.reader() as db:
            for snapshot in read_tables(db, "bench", store.under_use, lambda: follower.state.open):
                follower.state = replay(snapshot.table, follower.state)
                follower.boot(snapshot)
                runs += len(snapshot.table)
        return runs

    print(f"{timed(figures, 'in_tables', told)} runs in tables")
    store.close()
    return figures


if __name__ == "__main__":
    sys.exit(main())
