"""Figure: each view over 16 million jobs: milliseconds, bytes; some beside pandas and Plotly (pypi; --jobs 2000000).

The jobs are made by SQL: a year, 800 users, six partitions, waits and run times over five powers of ten, one or two
steps each; half of them hold GPUs, and those are judged. Each view is asked through a store that is open already:
once without a hub, which counts all runs, once as the hub asks it first, and ROUNDS times after that, when it has kept
the days; of these the median and the range are printed. pandas and Plotly make pages of the same columns in a
virtual environment of their own (bench/analytics_pandas.py); reading the columns is printed beside it. Then one line
of JSON.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from msgspec.json import encode

from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.database import Database
from gpuwaste.store.hub.store_changes import Touched
from gpuwaste.testing.process_memory import peak_rss_b
from gpuwaste.views.view import View, all_views, look
from gpuwaste.views.view_query import ViewQuery, Window
from gpuwaste.views.view_reads import KeptDays

TARGET_MS: Final = 500
TARGET_KB: Final = 100
YEAR_S: Final = 365 * 86400
_PART: Final = 1_000_000
END: Final = 1_767_225_600  # 2026-01-01
_JOBS: Final = """
INSERT INTO jobs BY NAME
SELECT
    'bench' AS cluster, i AS job_id, submit + wait AS run_start, submit, i::VARCHAR AS printed_id,
    CASE WHEN d[9] % 4 = 0 THEN i // 50 END AS array_job_id, 'job' || i % 97 AS name,
    'user' || u AS "user", 'account' || u % 40 AS account,
    'users' AS "group", 'part' || d[2] % 6 AS "partition", 'normal' AS qos,
    [3600, 14400, 86400, 172800][1 + d[3] % 4] AS time_limit_s, '' AS req_tres, '' AS submit_line,
    d[4] % 20 = 0 AS interactive, submit + wait AS "start", 'node' || i % 2000 AS nodes, 1 + d[5] % 4 AS n_nodes,
    16 AS cpus, CASE WHEN d[6] % 2 = 0 THEN [1, 2, 4, 8][1 + d[7] % 4] ELSE 0 END AS gpus, 'a100' AS gpu_type,
    '' AS alloc_tres, submit + wait + ran AS "end", ran AS elapsed_s, 0 AS suspended_s,
    [
        'COMPLETED', 'COMPLETED', 'COMPLETED', 'FAILED', 'TIMEOUT', 'CANCELLED', 'OUT_OF_MEMORY', 'COMPLETED'
    ][1 + d[8] % 8] AS state,
    '' AS verdict_id, 1000 + (800 - u) * 100 + d[7] % 1000 AS priority,
    CASE WHEN d[3] % 3 = 0 THEN 'SchedMain' ELSE 'SchedBackfill,StartReceived' END AS flags,
    1 + d[2] % 2 AS n_steps
FROM (
    SELECT i, d, $end - $year + (i * ($year - 200000)) // $jobs AS submit,
        floor(pow(10, (d[10] % 1000000) / 200000.0))::BIGINT AS wait,
        floor(800 * pow(d[1] % 10000 / 10000, 3))::INTEGER AS u,
        10 + floor(pow(10, 1 + (d[11] % 1000000) / 260000.0))::BIGINT AS ran
    FROM (
        SELECT i, [(hash(i, k) % 1000000007)::BIGINT FOR k IN range(1, 12)] AS d
        FROM generate_series($first, $last) t (i)
    )
)
"""
_STEPS: Final = """
INSERT INTO steps BY NAME
SELECT
    cluster, job_id, run_start, CASE WHEN s = 0 THEN 'batch' ELSE '0' END AS step, 'train' AS name,
    "start" + s AS "start", elapsed_s - s AS elapsed_s, 1 AS tasks, 1000000 AS max_rss_b, state
FROM jobs, range(n_steps) t (s)
WHERE job_id BETWEEN $first AND $last
"""
_JUDGED: Final = """
INSERT INTO judged BY NAME
SELECT
    1 AS rules, cluster, job_id, run_start, "end", "user", account, "partition", printed_id, array_job_id,
    array_task_id,
    name, state, gpus, gpu_type, false AS whole_node, 0 AS beyond, false AS conflict,
    {
        'devices': gpus, 'alloc_ms': ms, 'idle_ms': idle, 'low_ms': 0, 'moderate_ms': 0, 'high_ms': ms - idle - gap,
        'suspended_ms': 0, 'pending_ms': 0, 'untouched_ms': 0, 'idle_run_ms': idle, 'wasted_ms': idle, 'pct_ms': 0,
        'seen_ms': ms - gap, 'energy_j': NULL, 'unknown': CASE WHEN gap > 0 THEN MAP {'gap': gap} ELSE MAP {} END,
        'exempt': MAP {}
    } AS own,
    [0, 0, 0, 0, 0] AS level_devices, [0, 0, 0, 0, 0] AS level_ms, 0 AS under_devices, 0 AS under_ms,
    0 AS asked_devices,
    CASE WHEN idle > 0 THEN ['gpus_opened_idle'] ELSE [] END AS cause_kinds,
    CASE WHEN idle > 0 THEN [idle / 1000.0] ELSE [] END AS cause_s, '' AS causes
FROM (
    SELECT *, gpus * elapsed_s * 1000 AS ms, CASE WHEN job_id % 5 = 0 THEN ms ELSE 0 END AS idle,
        CASE WHEN job_id % 5 = 1 THEN ms // 20 ELSE 0 END AS gap
    FROM jobs
    WHERE gpus > 0
)
"""
_RULES: Final = """
INSERT INTO rules BY NAME
SELECT 1 AS id, 1 AS version, $text AS thresholds, true AS standing, $end AS judged_until
"""
_HOUR: Final = """
INSERT INTO hours BY NAME
SELECT
    'bench' AS cluster, -1 AS job_id, 0 AS run_start, 'n' AS node, 'GPU' AS gpu_uuid, 0 AS hour_utc, 1 AS seq,
    true AS final, 1.0 AS share, 0 AS t0_ms, 0 AS t1_ms, [] AS pct, [] AS util_ms, 0 AS idle_run_ms,
    [] AS unknown_reason, [] AS unknown_ms, 0 AS suspended_ms, false AS proc_seen, 'prolog' AS map_source,
    'confirmed' AS confidence
"""
_PARQUET: Final = """
COPY (
    SELECT "user", account, "partition", state, flags, submit, "start", "end", gpus, n_nodes, time_limit_s FROM jobs
)
TO '{}' (FORMAT parquet)
"""
_PANDAS: Final = Path(__file__).with_name("analytics_pandas.py")


def main() -> int:
    """Fill a store, ask every view, ask pandas and Plotly for some of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=16_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-pandas", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder in which the store is kept, and found by the next run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as scratch:
        folder = options.keep or Path(scratch)
        path, parquet = folder / f"hub{options.jobs}.duckdb", folder / f"jobs{options.jobs}.parquet"
        if not parquet.exists():
            fill(path, parquet, options.jobs)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            figures = pool.apply(ask, (path, options.rounds))
        pandas = {} if options.without_pandas else with_pandas(Path(scratch) / "venv", parquet, options.rounds)
    for name, taken in pandas.get("views", {}).items():
        print(f"{name + ' (pandas)':<20}{_spread(taken['ms']):<50}{taken['bytes'] / 1000:9.1f} KB")
    if pandas:
        print(f"pandas, Plotly: read {pandas['read_s']} s, {pandas['peak_mb']} MB at most")
    print(json.dumps({"bench": "analytics", "jobs": options.jobs, "views": figures, "pandas": pandas}))
    return 0


def fill(path: Path, parquet: Path, jobs: int) -> None:
    """Make the store, and the same jobs as Parquet."""
    db = Database.open(path, "hub", {"threads": "2"})
    for first in range(0, jobs, _PART):
        last = min(first + _PART, jobs) - 1
        db.execute(_JOBS, {"jobs": jobs, "year": YEAR_S, "end": END, "first": first, "last": last})
        db.execute(_STEPS, {"first": first, "last": last})
    db.execute(_JUDGED)
    db.execute(_RULES, {"text": LedgerSettings().to_text(), "end": END})
    db.execute(_HOUR)
    db.execute(_PARQUET.format(parquet))
    db.execute("CHECKPOINT")
    db.close()


def ask(path: Path, rounds: int) -> dict[str, Any]:
    """Time every view; prints the table."""
    figures: dict[str, Any] = {}
    db = Database.open(path, "hub", {"threads": "2"})
    window = Window(END - YEAR_S, END, END)
    kept = KeptDays(db, Touched())
    print(f"{'':<20}{'days are kept':<52}{'first asked':>23}{'without a hub':>23}")
    for view in all_views().values():
        without, _ = asked(view, ViewQuery(db, window), 1)
        first, _ = asked(view, ViewQuery(db, window, kept=kept), 1)
        taken, size = asked(view, ViewQuery(db, window, kept=kept), rounds)
        times = [wall for wall, _ in taken]
        cpu_ms = statistics.median(cpu for _, cpu in taken)
        met = statistics.median(times) <= TARGET_MS and size <= TARGET_KB * 1000
        others = "".join(f"{wall:8.0f} ms, CPU {cpu:6.0f}" for (wall, cpu), *_ in (first, without))
        said = f"{size / 1000:9.1f} KB  {'met' if met else 'MISSED'}"
        print(f"{view.name:<20}{_spread(times):<30}{cpu_ms:7.0f} ms of CPU {others}{said}", flush=True)
        figures[view.name] = {
            "ms": [round(ms) for ms in times], "cpu_ms": round(cpu_ms), "bytes": size, "met": met,
            "first": [round(ms) for ms in first[0]], "without": [round(ms) for ms in without[0]],
        }  # fmt: skip
    peak_mb = peak_rss_b(os.getpid()) // 2**20
    print(f"gpuwaste: {peak_mb} MB at most; target {TARGET_MS} ms, {TARGET_KB} KB")
    figures["peak_mb"] = peak_mb
    db.close()
    return figures


def asked(view: View, asking: ViewQuery, rounds: int) -> tuple[list[tuple[float, float]], int]:
    """Return how long a view takes each time, and of how much CPU, in milliseconds; and the bytes of its document."""
    taken, size = [], 0
    for _ in range(rounds):
        began, busy = time.perf_counter(), time.process_time()
        size = len(encode(look(view, replace(asking, asked={})).document))
        taken.append(((time.perf_counter() - began) * 1000, (time.process_time() - busy) * 1000))
    return taken, size


def with_pandas(folder: Path, parquet: Path, rounds: int) -> dict[str, Any]:
    """Return what pandas and Plotly take for their pages of some views, in an environment of their own."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "pandas", "pyarrow", "plotly"], check=True)
    done = subprocess.run([python, str(_PANDAS), str(parquet), str(rounds)], check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _spread(times: list[float]) -> str:
    return f"{statistics.median(times):8.0f} ms ({min(times):.0f}-{max(times):.0f})"


if __name__ == "__main__":
    sys.exit(main())
