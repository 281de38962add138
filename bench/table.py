"""How long the hub's store takes to become a table for training, and a state for predictions; a million jobs.

The jobs are those of bench.report, with the events that an import tells of them. Each step is timed in one child
process, with the peak of its resident memory up to then. Prints a table, then one line of JSON.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from bench.report import fill
from gpuwaste.core.clock import SystemClock
from gpuwaste.history.follow import Follower
from gpuwaste.history.from_store import read_table
from gpuwaste.history.replay import replay
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

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
    """Fill a store, measure in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        path = Path(folder) / "hub.duckdb"
        counts = fill(path, options.jobs)
        db = Database.open(path, "hub")
        db.execute(_EVENTS)
        db.execute("CHECKPOINT")
        db.close()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            figures = pool.apply(measure, (path,))
    print(json.dumps({"bench": "table", **counts, **figures}))
    return 0


def measure(path: Path) -> dict[str, Any]:
    """Time each step on the store at `path`; prints the table."""
    figures: dict[str, Any] = {}

    def timed(name: str, work: Callable[[], T]) -> T:
        began, busy = time.perf_counter(), time.process_time()
        result = work()
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - busy
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(f"{name:<24}{seconds:8.2f} s{cpu_s:8.2f} s of CPU{peak_mb:8.0f} MB at most so far", flush=True)
        figures[name] = {"s": round(seconds, 3), "cpu_s": round(cpu_s, 3), "peak_rss_mb": round(peak_mb)}
        return result

    store = HubStore.open(path, SystemClock())
    last = store.counts()["last_event"]
    timed("history_page_first", lambda: store.history(0, PAGE))
    events = timed("history_page_last", lambda: store.history(last - PAGE, PAGE))
    with store.reader() as db:
        snapshot = timed("read_table", lambda: read_table(db, "bench"))
    store.close()
    follower = Follower(timed("replay_state", lambda: replay(snapshot.table)), "bench")
    timed("boot", lambda: follower.boot(snapshot))
    follower.seq, follower._ended = last - PAGE, {}  # noqa: SLF001 as if these had not been told
    timed("follow_page", lambda: follower.apply(events))
    return figures


if __name__ == "__main__":
    sys.exit(main())
