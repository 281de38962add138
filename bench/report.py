"""Figure: how long `gpuwaste report` takes as a whole process, with a million jobs in the hub.

The jobs are made by SQL: a year of them, 500 users, the first of whom has about 2,000 and gets the report. The hub
is a process of its own that serves a Unix socket; each report is a new process, from fork to exit. Prints a table,
then one line of JSON.
"""

import argparse
import grp
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.judged import judged
from gpuwaste.cli.hub_access import ask_hub
from gpuwaste.core.config import load_config
from gpuwaste.store.database import Database
from gpuwaste.testing.process_memory import peak_rss_b

TARGET_MS: Final = 300
USERS: Final = 500
YEAR_S: Final = 365 * 86400
GPUWASTE: Final = Path(sys.executable).with_name("gpuwaste")

# Job i of n: spread over the year before $now, one user in USERS (the first has each $every-th job, some in any week),
# 1 GPU or (one in five) 4 GPUs, ten minutes to six hours; nearly all have ended.
_JOBS: Final = """
INSERT INTO jobs BY NAME
SELECT
    'bench' AS cluster, i AS job_id, s AS run_start, s - 300 AS submit, i::VARCHAR AS printed_id,
    'train' || i % 97 AS name,
    'user' || CASE WHEN i % $every = 0 THEN 0 ELSE 1 + hash(i) % ($users - 1) END AS "user",
    'account' || hash(i) % 40 AS account, 'users' AS "group", 'gpu' AS "partition", 'normal' AS qos,
    86400 AS time_limit_s,
    'cpu=8,gres/gpu=1' AS req_tres, 'sbatch --gres=gpu:a100:' || g || ' train.sh' AS submit_line,
    hash(i, 2) % 20 = 0 AS interactive, s AS "start", 'gpu' || i % 100 AS nodes, 1 AS n_nodes, 8 AS cpus, g AS gpus,
    'a100' AS gpu_type, 'cpu=8,gres/gpu:a100=' || g AS alloc_tres, 68719476736 AS mem_req_b,
    CASE WHEN s + d < $now THEN s + d END AS "end", least(d, $now - s) AS elapsed_s, 0 AS suspended_s,
    CASE WHEN s + d < $now THEN 'COMPLETED' ELSE 'RUNNING' END AS state,
    3.5 * d AS total_cpu_s, 17179869184 AS max_rss_b
FROM (
    SELECT i, $now - $year + i * ($year - 600) // $jobs AS s, CASE WHEN hash(i, 1) % 5 = 0 THEN 4 ELSE 1 END AS g,
        600 + (hash(i, 3) % 21000)::BIGINT AS d
    FROM generate_series(0, $jobs - 1) t (i)
)
"""
# One row per GPU and hour: a third of the GPUs idle, the others busy with a spread of percents.
_HOURS: Final = """
INSERT INTO hours BY NAME
SELECT
    cluster, job_id, run_start, nodes AS node, 'GPU-' || job_id % 100 || '-' || gpu AS gpu_uuid,
    h AS hour_utc, 4 AS seq,
    "end" IS NOT NULL AS final, 1.0 AS share, a * 1000 AS t0_ms, b * 1000 AS t1_ms,
    CASE WHEN idle THEN [0] ELSE [0, 12, 35, 60, 80, 95, 100] END AS pct,
    CASE WHEN idle THEN [ms]
        ELSE [ms // 10, ms // 10, ms // 10, ms // 5, ms // 5, ms // 10, ms - ms // 10 * 4 - ms // 5 * 2] END AS util_ms,
    CASE WHEN idle THEN ms ELSE 0 END AS idle_run_ms, [] AS unknown_reason, [] AS unknown_ms, 0 AS suspended_ms,
    NOT idle AS proc_seen, 8589934592 AS mem_max_b, 42949672960 AS mem_total_b, 250.0 * (b - a) AS energy_j,
    b * 1000 AS last_active_ms, 300.0 AS power_w_at_full, 400.0 AS power_limit_w, 0.6 AS sm_ratio_at_full,
    3.5 * (b - a) AS cpu_s, 17179869184 AS host_mem_max_b, 'prolog' AS map_source, 'confirmed' AS confidence
FROM (
    SELECT *, greatest("start", h) AS a, least(coalesce("end", $now), h + 3600) AS b, ((b - a) * 1000)::INTEGER AS ms,
        hash(job_id, gpu) % 3 = 0 AS idle
    FROM (
        SELECT *, unnest(range("start" // 3600 * 3600, coalesce("end", $now), 3600)) AS h
        FROM (SELECT *, unnest(range(gpus)) AS gpu FROM jobs)
    )
)
ORDER BY h
"""


def main() -> int:
    """Fill a store, start a hub on it, time the reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        home = Path(folder)
        began = time.perf_counter()
        counts = fill(home / "hub.duckdb", options.jobs)
        print(f"{counts['jobs']} jobs, {counts['hours']} hours rows, made in {time.perf_counter() - began:.0f} s")
        figures = judged(home)
        hub = start_hub(home)
        try:
            figures |= measure(home, options.runs)
            figures["rss_mb"] = round(peak_rss_b(hub.pid) / 1e6)
            print(f"peak memory of the hub: {figures['rss_mb']} MB")
        finally:
            hub.terminate()
            hub.wait(30)
        store_mb = sum(f.stat().st_size for f in home.glob("hub.duckdb*")) / 1e6
    print(json.dumps({"bench": "report", "target_ms": TARGET_MS, "store_mb": round(store_mb), **counts, **figures}))
    return 0


def fill(path: Path, jobs: int) -> dict[str, int]:
    """Make the store and return its counts."""
    db = Database.open(path, "hub", {"threads": str(os.cpu_count() or 1)})
    now = int(time.time())
    db.execute(_JOBS, {"now": now, "year": YEAR_S, "jobs": jobs, "users": USERS, "every": max(2, jobs // 2000)})
    db.execute(_HOURS, {"now": now})
    counts = {}
    for table in ("jobs", "hours"):
        row = db.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 own names
        counts[table] = int(row[0]) if row else 0
    row = db.execute("SELECT count(*) FROM jobs WHERE \"user\" = 'user0'").fetchone()
    counts["jobs_of_user"] = int(row[0]) if row else 0
    db.execute("CHECKPOINT")
    db.close()
    return counts


def start_hub(home: Path) -> "subprocess.Popen[bytes]":
    """Start the hub on the store and wait until it answers."""
    group = grp.getgrgid(os.getgid()).gr_name
    config = home / "gpuwaste.toml"
    config.write_text(
        f'[common]\ncluster = "bench"\nhub_url = "unix:{home}/hub.sock"\n'
        f'[hub]\nlisten = ""\nsocket = "{home}/hub.sock"\nstate_dir = "{home}"\nstaff_groups = ["{group}"]\n'
    )
    with (home / "hub.log").open("wb") as log:
        hub = subprocess.Popen([GPUWASTE, "hub", "run", "--config", config], stderr=log, stdout=log)
    until = time.monotonic() + 60
    while time.monotonic() < until and hub.poll() is None:
        if report(home, "--user", "nobody", "--json").returncode == 3:
            return hub
        time.sleep(0.2)
    hub.kill()
    raise SystemExit(f"the hub does not answer: {(home / 'hub.log').read_text()[-2000:]}")


def measure(home: Path, runs: int) -> dict[str, Any]:
    """Time each kind of report and print the table."""
    kinds = {
        "user_week": (["--user", "user0"], runs),
        "user_year": (["--user", "user0", "-S", "now-365days"], runs),
        "user_year_csv": (["--user", "user0", "-S", "now-365days", "--csv"], max(3, runs // 4)),
        "cluster_day": (["--allusers", "-S", "now-1days"], max(3, runs // 4)),
        "cluster_week": (["--allusers"], max(3, runs // 4)),
        "cluster_year": (["--allusers", "-S", "now-365days"], max(3, runs // 4)),
    }
    print(f"{'whole process, ms':<20}{'min':>8}{'median':>8}{'p95':>8}{'max':>8}{'runs':>6}")
    figures = {}
    for name, (words, count) in kinds.items():
        report(home, *words)
        times = sorted(timed(home, words) for _ in range(count))
        spread = [times[0], statistics.median(times), times[int(0.95 * (count - 1))], times[-1]]
        print(f"{name:<20}" + "".join(f"{ms:8.0f}" for ms in spread) + f"{count:6}")
        figures[name] = dict(
            zip(("min_ms", "median_ms", "p95_ms", "max_ms"), (round(ms) for ms in spread), strict=True)
        )
    figures["job"] = job_document_ms(home / "gpuwaste.toml", runs, 4711)
    return figures


def job_document_ms(path: Path, runs: int, job: int) -> dict[str, int]:
    """Time the hub's answer to one job, without a process around it."""
    config = load_config(path)
    ask_hub(config, f"/v1/jobs/{job}", {}, 60.0)
    times = []
    for _ in range(max(5, runs)):
        began = time.perf_counter()
        ask_hub(config, f"/v1/jobs/{job}", {}, 60.0)
        times.append((time.perf_counter() - began) * 1000)
    spread = sorted(times)
    print(f"{'job document':<20}{spread[0]:8.0f}{statistics.median(spread):8.0f}{'':8}{spread[-1]:8.0f}{len(spread):6}")
    return {"min_ms": round(spread[0]), "median_ms": round(statistics.median(spread)), "max_ms": round(spread[-1])}


def timed(home: Path, words: list[str]) -> float:
    """Return the milliseconds of one report process, from its start to its end."""
    began = time.perf_counter()
    done = report(home, *words)
    took = (time.perf_counter() - began) * 1000
    if done.returncode != 0:
        raise SystemExit(f"gpuwaste report {' '.join(words)}: exit code {done.returncode}: {done.stderr.decode()}")
    return took


def report(home: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    """Run one report process."""
    return subprocess.run(
        [GPUWASTE, "report", "--config", home / "gpuwaste.toml", *words], capture_output=True, check=False, timeout=300
    )


if __name__ == "__main__":
    sys.exit(main())
