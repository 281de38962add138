"""Judging of a bench's store: how many runs a second, in a process of its own; the rest of a year's runs by SQL.

Beside it a thread asks for the write lock all the time, as ingest does: how long it waits at most is printed.
"""

import multiprocessing
import os
import threading
import time
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.clock import SystemClock
from gpuwaste.ledger.judging import STEP_RUNS
from gpuwaste.ledger.judging_queue import judge_next, prepare, sum_days
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.process_memory import peak_rss_b

# What judging makes of runs that are busy but for one in six: one cause for each of these.
_REST: Final = """
INSERT INTO judged BY NAME
SELECT
    $rules AS rules, cluster, job_id, run_start, "end", "user", account, "partition", printed_id, array_job_id,
    array_task_id, name, state, gpus, gpu_type, false AS whole_node, 0 AS beyond, false AS conflict,
    {
        'devices': gpus, 'alloc_ms': ms, 'idle_ms': idle_ms, 'low_ms': low_ms, 'moderate_ms': low_ms,
        'high_ms': ms - idle_ms - 2 * low_ms, 'suspended_ms': 0, 'pending_ms': 0, 'untouched_ms': idle_ms,
        'idle_run_ms': idle_ms, 'wasted_ms': idle_ms, 'pct_ms': (ms - idle_ms) * 60, 'seen_ms': ms,
        'energy_j': 0.25 * ms, 'unknown': MAP {}, 'exempt': MAP {}
    } AS own,
    NULL AS shared,
    CASE WHEN idle THEN [gpus, 0, 0, 0, 0] ELSE [0, 0, gpus, 0, 0] END AS level_devices,
    CASE WHEN idle THEN [ms, 0, 0, 0, 0] ELSE [0, 0, ms, 0, 0] END AS level_ms,
    CASE WHEN idle THEN gpus ELSE 0 END AS under_devices, idle_ms AS under_ms, gpus AS asked_devices,
    total_cpu_s AS cpu_used_s, cpus * elapsed_s::DOUBLE AS cpu_held_s, 0.25 AS memory_ratio, NULL AS small,
    CASE WHEN idle THEN ['gpus_untouched'] ELSE [] END AS cause_kinds,
    CASE WHEN idle THEN [ms / 1000] ELSE [] END AS cause_s,
    CASE WHEN idle THEN to_json([{
        'kind': 'gpus_untouched', 'title': 'no process ever used its GPUs: drop the request',
        'runs': [{'cluster': cluster, 'jobid': job_id, 'start': run_start}], 'evidence': {'gpus': gpus},
        'fix': ['#SBATCH --gres=none'], 'wasted_gpu_s': ms / 1000, 'provisional': false
    }])::VARCHAR ELSE '' END AS causes
FROM (
    SELECT *, gpus * elapsed_s * 1000 AS ms, hash(job_id, 9) % 6 = 0 AS idle,
        CASE WHEN idle THEN ms ELSE 0 END AS idle_ms,
        CASE WHEN idle THEN 0 ELSE ms // 5 END AS low_ms
    FROM jobs
    WHERE "end" > $from_s AND "end" <= $to_s
)
ORDER BY "end"
"""


def judged(state: Path, at_most_s: float = 1e9) -> dict[str, Any]:
    """Judge a store for so long, make the rest by SQL, and print what judging took."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures: dict[str, Any] = pool.apply(_judge, (state, at_most_s))
    print(", ".join(f"{name} {value}" for name, value in figures.items()))
    return figures


def _judge(state: Path, at_most_s: float) -> dict[str, Any]:
    """Judge as the hub does."""
    settings, now = LedgerSettings(), int(time.time())
    store = HubStore.open(state / "hub.duckdb", SystemClock(), 512)
    with store.writing() as db:
        rules = prepare(db, settings)[0]
    runs, waits, stop = 0, [0.0], threading.Event()
    other = threading.Thread(target=_wait_to_write, args=(store, waits, stop))
    other.start()
    began, began_cpu = time.monotonic(), time.process_time()
    while time.monotonic() - began < at_most_s and rules.judged_until < now - settings.pending_s:
        rules, judged_runs = judge_next(store, rules, settings, now, STEP_RUNS)
        runs += judged_runs
    took, cpu, rss = time.monotonic() - began, time.process_time() - began_cpu, peak_rss_b(os.getpid())
    stop.set()
    other.join()
    bounds = {"rules": rules.id, "from_s": rules.judged_until, "to_s": now - int(settings.pending_s)}
    with store.writing() as db:
        db.execute('DELETE FROM judged WHERE "end" > $from_s', {"from_s": bounds["from_s"]})
        db.execute(_REST, bounds)
        db.run("summed_days_back", {"end": bounds["from_s"]})
        db.run("rules_until", {"id": rules.id, "from_s": bounds["from_s"], "until": bounds["to_s"]}).fetchall()
    began = time.monotonic()
    days = sum_days(store, rules.id, bounds["to_s"], threading.Event())
    summing = time.monotonic() - began
    store.close()
    return {
        "judged_runs": runs,
        "judged_per_s": round(runs / took) if took else 0,
        "judged_per_cpu_s": round(runs / cpu) if cpu else 0,
        "judging_wait_max_ms": round(1000 * max(waits)),
        "judging_rss_mb": round(rss / 1e6),
        "summed_days": days,
        "summed_days_s": round(summing, 1),
    }


def judge_at_once(store: HubStore, settings: LedgerSettings, now: int) -> None:
    """Put rows made by SQL in the place of what judging makes of all settled runs."""
    until = now - int(settings.pending_s)
    with store.writing() as db:
        rules = prepare(db, settings)[0]
        db.execute(_REST, {"rules": rules.id, "from_s": 0, "to_s": until})
        db.run("rules_until", {"id": rules.id, "from_s": 0, "until": until}).fetchall()


def _wait_to_write(store: HubStore, waits: list[float], stop: threading.Event) -> None:
    """Take the write lock a hundred times a second, and note how long that took."""
    while not stop.wait(0.01):
        began = time.monotonic()
        with store.writing():
            waits.append(time.monotonic() - began)
