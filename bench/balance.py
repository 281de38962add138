"""Figure: the balance of a year of 2,000 nodes and 5 million jobs: a month, the year, and what keeping it up costs.

The year is made by SQL (bench/year_site.py), its waits and its judged rows too. Some days are counted by the hub's own
keeper, in processor seconds, the other days are copies of these; then the view is timed on a store that is open, as in
a hub. The alternative is the same view without stored hours, for a single day.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.judged import judged
from bench.year_site import fill
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.machine import machine_store
from gpuwaste.ledger.balance.balance_store import StoredHours, store_balance
from gpuwaste.ledger.balance.window import WindowBalance, add_window, parts_of
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.process_memory import peak_rss_b
from gpuwaste.views.view import look, view_named
from gpuwaste.views.view_query import ViewQuery, Window

CLUSTER: Final = "bench"
MONTH_DAYS: Final = 30
# Each job ends after four fifths of its time, so GPUs are free for hours. It waited (half of them 20 minutes and more,
# two hours on average, 4 days at most), and one in ten takes 400 GiB of its node's 512.
_DEMAND: Final = """
    UPDATE jobs SET
        "end" = "end" - elapsed_s // 5, elapsed_s = elapsed_s - CASE WHEN "end" IS NULL THEN 0 ELSE elapsed_s // 5 END,
        submit = "start" - least(345600, exp(ln(1200) + 2 * sqrt(-2 * ln(u1)) * cos(2 * pi() * u2)))::BIGINT,
        mem_req_b = held_b, alloc_tres = alloc_tres || ',mem=' || (held_b >> 20) || 'M'
    FROM (
        SELECT job_id, (hash(job_id, 12) % 999999 + 1) / 1e6 AS u1, (hash(job_id, 13) % 1000000) / 1e6 AS u2,
            CASE WHEN hash(job_id, 14) % 10 = 0 THEN 400::BIGINT << 30 ELSE mem_req_b END AS held_b
        FROM jobs
    ) drawn
    WHERE drawn.job_id = jobs.job_id
"""
_COPY_HOURS: Final = """
INSERT INTO balance_hours BY NAME
SELECT * REPLACE (hour_utc + $shift AS hour_utc)
FROM balance_hours WHERE hour_utc >= $since AND hour_utc < $since + 86400
"""
_COPY_BLOCKERS: Final = """
INSERT INTO balance_blockers BY NAME
SELECT * REPLACE (hour_utc + $shift AS hour_utc, run_start + $shift AS run_start)
FROM balance_blockers WHERE hour_utc >= $since AND hour_utc < $since + 86400
"""
_ROWS: Final = "SELECT (SELECT count(*) FROM balance_hours), (SELECT count(*) FROM balance_blockers)"
_SHARES: Final = """
SELECT class, round(100 * sum(gpu_s) / sum(sum(gpu_s)) OVER (), 2) FROM balance_hours GROUP BY class ORDER BY 2 DESC
"""


def main() -> int:
    """Make the year, count some days, time the view."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--counted-days", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-balance-") as folder:
        now = int(time.time()) // DAY_S * DAY_S
        counts = fill(Path(folder) / "hub.duckdb", options.nodes, options.days, now, 0)
        demand(Path(folder) / "hub.duckdb")
        judged(Path(folder), 0.0)
        store = HubStore.open(Path(folder) / "hub.duckdb", SystemClock(), 512)
        figures = {"nodes": options.nodes, "days": options.days, "jobs": counts["jobs"]}
        figures |= kept(store, options.nodes, (now - options.days * DAY_S, now), options.counted_days)
        figures |= timed(store, now, options.runs)
        figures["rss_mb"] = round(peak_rss_b(os.getpid()) / 1e6)
        store.close()
    print("\n".join(f"{name:24} {value}" for name, value in figures.items()))
    print(json.dumps({"bench": "balance", **figures}))
    return 0


def demand(path: Path) -> None:
    """Let jobs wait, GPUs be free and memory be taken in a site that is always full."""
    db = Database.open(path, "hub", {"threads": "2", "memory_limit": "4GB"})
    db.execute(_DEMAND).fetchall()
    db.close()


def kept(store: HubStore, nodes: int, year: tuple[int, int], counted: int) -> dict[str, Any]:
    """Count some days in the middle of the year as the hub does, and copy them to the others."""
    with store.writing() as db:
        machine = [
            Node(f"gpu{n}", 64, 512 << 30, {"a100": 8}, partitions=("gpu", "long") if n % 4 == 0 else ("gpu",))
            for n in range(nodes)
        ]
        machine_store.write_nodes(db, CLUSTER, machine, year[0] - DAY_S)
        machine_store.set_complete(db, "machine_events", CLUSTER, year[0] - DAY_S, year[1])
    middle = year[0] + (year[1] - year[0]) // (2 * DAY_S) * DAY_S
    cpu_s = []
    for day in range(middle, middle + counted * DAY_S, DAY_S):
        began = time.process_time()
        with store.reader() as db:
            ((start, end, sums),) = parts_of(db, CLUSTER, (day, day + DAY_S), year[1])
        store_balance(store, CLUSTER, StoredHours(start, end), sums)
        cpu_s.append(time.process_time() - began)
    with store.writing() as db:
        for number, day in enumerate(range(year[0], year[1], DAY_S)):
            since = middle + number % counted * DAY_S
            if not middle <= day < middle + counted * DAY_S:
                for copy in (_COPY_HOURS, _COPY_BLOCKERS):
                    db.execute(copy, {"since": since, "shift": day - since}).fetchall()
        for key, value in ((f"balance_from:{CLUSTER}", year[0]), (f"balance:{CLUSTER}", year[1])):
            db.run("mark_set", {"key": key, "value": value}).fetchall()
        rows, blockers = db.execute(_ROWS).fetchall()[0]
        shares = dict(db.execute(_SHARES).fetchall())
    day_s = statistics.median(cpu_s)
    # The hub counts the last 6 hours anew every 15 minutes, and once a day the days in which runs changed: a week here.
    share = (96 * day_s * 7 / 24 + 7 * day_s) / DAY_S
    return {
        "day_cpu_s": [round(s, 2) for s in cpu_s],
        "kept_up_core_share": round(share, 4),
        "rows": rows,
        "blockers": blockers,
        "classes_pct": shares,
    }


def timed(store: HubStore, now: int, runs: int) -> dict[str, Any]:
    """Time the view of a month and of the year, its part of the balance, and a day without stored hours."""
    found: dict[str, Any] = {}
    for name, days in (("month", MONTH_DAYS), ("year", 365)):
        window = Window(now - days * DAY_S, now, now)
        with store.reader() as db:
            found[f"{name}_s"] = _median(partial(_view, db, window), runs)
            found[f"{name}_balance_s"] = _median(partial(_balance, db, window), runs)
    with store.writing() as db:
        db.run("mark_set", {"key": f"balance:{CLUSTER}", "value": now - 2 * DAY_S}).fetchall()
    with store.reader() as db:
        window = Window(now - DAY_S, now, now)
        found["day_not_stored_s"] = _median(partial(_balance, db, window), 1)
    return found


def _view(db: Database, window: Window) -> None:
    look(view_named("balance"), ViewQuery(db, window, LedgerSettings()))


def _balance(db: Database, window: Window) -> None:
    add_window(db, CLUSTER, WindowBalance(window.start, window.end, window.now, window.step))


def _median(call: Callable[[], object], runs: int) -> float:
    call()
    taken = []
    for _ in range(runs):
        began = time.monotonic()
        call()
        taken.append(time.monotonic() - began)
    return round(statistics.median(taken), 3)


if __name__ == "__main__":
    raise SystemExit(main())
