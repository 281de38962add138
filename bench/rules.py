"""Figure: rules: a pass of 100 over 20,000 jobs, a replayed month, idle GPUs that woke up (--nodes 380).

A pass of 100 rules over 20,000 running jobs; the replay of the idle ladder over a month of GPU jobs of a site that is
made by SQL (bench/year_site.py); and, where the public log is there, per-minute use of real GPUs at the start of jobs.
Times are CPU seconds of this process, one thread of DuckDB, beside wall seconds. Prints tables, then a line of JSON.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.year_site import fill
from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_facts import GpuState
from gpuwaste.act.rules.rule_file import load_rule, rule_from_toml
from gpuwaste.act.rules.rule_matching import StepsSpent
from gpuwaste.act.rules.rule_moments import Moment, running_facts
from gpuwaste.act.rules.rule_pass import Ladders, PassInstant, evaluate
from gpuwaste.act.rules.rule_replay import replayed
from gpuwaste.act.rules.rule_text import replay_text
from gpuwaste.core.bootstrap import BootstrapSample, interval
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.show.layout import Look
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.store.hub.hub_store import HubStore

ROOT: Final = Path(__file__).parents[1]
PHILLY: Final = "gpu/philly_dre"
_CONDITIONS: Final = (
    "ledger.idle_s >= {n}00.0 && ledger.age_s < 1200.0",
    "ledger.untouched_gpus == job.gpus && job.run_s > 7{n}00.0",
    "job.left_s < {n}.0 && job.left_s > 0.0 && job.limit_s >= 3600.0",
    "user.short_1d >= {n}0 && user.short_1d * 2 > user.ended_1d",
    "job.partition.startsWith('gpu') && job.user.matches('^user{n}$') && ledger.idle_gpus > 1",
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000, help="running jobs of the pass")
    parser.add_argument("--rules", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=380, help="of the replayed site, of 8 GPUs each")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="public logs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-rules-") as folder:
        figures: dict[str, Any] = {"pass": passes(Path(folder), options.jobs, options.rules)}
        figures["replay"] = replay(Path(folder), options.nodes, options.days)
    if (options.data / PHILLY).exists():
        figures["philly"] = philly(options.data / PHILLY)
    print(json.dumps({"bench": "rules", "target_pass_s": 1.0, "target_replay_s": 60.0, **figures}))
    return 0


def timed(name: str, act: Callable[[], object]) -> dict[str, float]:
    """Return and print CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    act()
    found = {"cpu_s": round(time.process_time() - cpu, 3), "wall_s": round(time.perf_counter() - wall, 3)}
    print(f"{name:<46}{found['cpu_s']:9.2f} s CPU{found['wall_s']:9.2f} s wall")
    return found


def passes(home: Path, jobs: int, count: int) -> dict[str, Any]:
    """Time one pass: the facts of running jobs, all conditions, the ladders of those that match."""
    store = HubStore.open(home / "pass.duckdb", SystemClock(), 512)
    now = 1_800_000_000
    with store.writing() as db:
        db.execute(
            """
            INSERT INTO jobs BY NAME
            SELECT 'bench' AS cluster, i AS job_id, $now - i % 90000 AS run_start, $now - i % 90000 - 60 AS submit,
                i::VARCHAR AS printed_id, 'train' AS name, 'user' || i % 400 AS "user", 'account' || i % 40 AS account,
                'users' AS "group", 'gpu' || i % 5 AS "partition", 'normal' AS qos, 86400 AS time_limit_s,
                '' AS req_tres, '' AS submit_line, false AS interactive, $now - i % 90000 AS "start", 'n' AS nodes,
                1 AS n_nodes, 8 AS cpus, 1 AS gpus, '' AS gpu_type, '' AS alloc_tres,
                CASE WHEN i > $jobs THEN $now - i % 90000 + 30 END AS "end", 0 AS suspended_s,
                CASE WHEN i > $jobs THEN 'COMPLETED' ELSE 'RUNNING' END AS state, '' AS verdict_id
            FROM range(1, 3 * $jobs) t (i)
            """,
            {"now": now, "jobs": jobs},
        )
    texts = (_CONDITIONS[n % len(_CONDITIONS)].format(n=10 + n) for n in range(count))
    rules = [_rule(f"rule{n}", text) for n, text in enumerate(texts)]
    state = [_state(i) for i in range(jobs)]
    moments = [Moment(RunKey("bench", i + 1, now - (i + 1) % 90000), now, one) for i, one in enumerate(state)]
    ladders: dict[str, Ladders] = {rule.name: {} for rule in rules}
    figures: dict[str, Any] = {"jobs": jobs, "rules": count}

    def one(at: int) -> int:
        with store.reader() as db:
            running_facts(db, moments)
            spent = {rule.name: StepsSpent() for rule in rules}
            found = evaluate(db, rules, ladders, spent, PassInstant(at, datetime.fromtimestamp(at, UTC)))
        return sum(each.matched for each in found)

    figures["first"] = timed(f"a pass, {count} rules x {jobs:,} jobs, the first", lambda: one(now))
    figures["next"] = timed("the next pass", lambda: one(now + 60))
    figures["matches"] = one(now + 120)
    print(f"{'matches':<46}{figures['matches']:9,}")
    store.close()
    return figures


def _state(number: int) -> GpuState:
    """Return the GPU of a job: one in six is idle, for up to 40 minutes most of them, one in a hundred untouched."""
    idle_s = float(hash((number, 1)) % 2400) if number % 6 == 0 else 0.0
    return GpuState(
        idle_s * (10 if number % 60 == 0 else 1), int(idle_s > 0), idle_s, int(number % 100 == 0), 1.0, 0.0, 300.0, 1.0
    )


def _rule(name: str, where: str) -> Rule:
    step = '[[do]]\nafter = "30m"\naction = "notify"\nsubject = "s"\ntext = "Job {job.id}"\n'
    text = f"where = {json.dumps(where)}\n{step}"
    return rule_from_toml(text.encode(), f"{name}.toml", name)


def replay(home: Path, nodes: int, days: int) -> dict[str, Any]:
    """Time the replay of the idle ladder over a month, with every hour kept; the site wakes some idle GPUs."""
    path, now = home / "replay.duckdb", 1_800_000_000
    counts = fill(path, nodes, days, now, days)
    db = Database.open(path, "hub", {"threads": "1", "memory_limit": "2GB"})
    # A GPU that is idle is so from its last activity on; in one hour of twelve it was for the first part of the hour.
    db.execute(
        """
        UPDATE hours SET
            last_active_ms = CASE WHEN pct = [0] THEN NULL ELSE t1_ms END,
            idle_run_ms = CASE WHEN pct = [0] OR hash(job_id, hour_utc) % 12 > 0 THEN idle_run_ms
                ELSE least(hash(job_id, hour_utc, 1) % 3600000, t1_ms - t0_ms)::INTEGER END
        """
    )
    rule = load_rule(ROOT / "etc/rules.d/idle-gpus.toml")
    window = (now - days * DAY_S, now)
    found = []
    figures: dict[str, Any] = {"nodes": nodes, "days": days, **counts}
    figures["time"] = timed(
        f"replay of {days} days", lambda: found.append(replayed(db, rule, "bench", *window, LedgerSettings()))
    )
    figures["runs"] = found[0].runs
    print(replay_text(found[0], Look()))
    db.close()
    return figures


def philly(folder: Path) -> dict[str, Any]:
    """Return how often GPUs that were idle for the first minutes of a real job were at work soon after.

    The log has the minutes 0 to 3 of each job's GPUs and no later ones: longer delays cannot be judged by it.
    """
    db = connect(options={"threads": "1"})
    db.execute(
        """
        CREATE TABLE minutes AS
        SELECT jobid, minute, max(gpu_util) AS use, bool_or(gpu_util IS NULL OR isnan(gpu_util)) AS unknown
        FROM read_parquet($gpus) WHERE minute BETWEEN 0 AND 3 GROUP BY ALL
        """,
        {"gpus": str(folder / "philly_gpu_util_m10_p3.parquet")},
    )
    print(
        f"\n{'idle from minute 0, real GPUs':<32}{'jobs':>7}{'idle':>7}"
        f"{'woke by minute 3':>18}{'still idle':>24}{'GPU-h held':>12}"
    )
    figures: dict[str, Any] = {}
    for after in (1, 2, 3):
        rows = db.execute(
            """
            WITH known AS (
                SELECT jobid, bool_or(unknown) AS unknown, count(*) AS minutes,
                    max(use) FILTER (minute < $after) AS before, max(use) FILTER (minute >= $after) AS later
                FROM minutes GROUP BY jobid
            )
            SELECT j."user", count(*) AS jobs, count(*) FILTER (k.before = 0) AS idle,
                count(*) FILTER (k.before = 0 AND k.later = 0) AS still,
                coalesce(sum(j.n_gpus * j.runtime_min) FILTER (k.before = 0), 0) / 60 AS held_h
            FROM known k JOIN read_parquet($jobs) j USING (jobid)
            WHERE NOT k.unknown AND k.minutes = 4
            GROUP BY j."user"
            """,
            {"after": after, "jobs": str(folder / "philly_sampled_jobs.parquet")},
        ).fetchall()
        jobs, idle, still = (sum(row[place] for row in rows) for place in (1, 2, 3))
        held_h = sum(row[4] for row in rows)
        share = still / idle if idle else 0.0
        ends = interval(BootstrapSample(blocks=[(row[3], row[2]) for row in rows if row[2]]), share) or (share, share)
        figures[str(after)] = {"jobs": jobs, "idle": idle, "still_idle": round(share, 3), "interval": ends}
        print(
            f"{f'first {after} min':<32}{jobs:>7,}{idle:>7,}{idle - still:>18,}"
            f"{f'{share:.3f} [{ends[0]:.3f},{ends[1]:.3f}]':>24}{held_h:>12,.0f}"
        )
    return figures


if __name__ == "__main__":
    sys.exit(main())
