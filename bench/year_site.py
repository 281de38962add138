"""A year of a site in a hub's store, made by SQL: every GPU busy with one job after the other, one row an hour.

Each node is cut into one slot of 8 GPUs, two of 4, four of 2 or eight of 1; a slot runs jobs whose lengths are
log-normal (median 6 hours, mean 12, at most 4 days). Users differ: the first hundredth of them has a tenth of the jobs.
The same seed (DuckDB's hash) gives the same site. Rows are inserted day by day, as they would have come.
"""

from pathlib import Path
from typing import Final

from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database

USERS: Final = 1000
THREADS: Final = "2"
MAX_JOB_S: Final = 4 * DAY_S
_LANES: Final = """
CREATE TEMP TABLE lanes AS
SELECT n AS node_no, g AS gpus, unnest(range(0, 8, g)) AS first_gpu
FROM (SELECT n, [8, 8, 8, 4, 4, 4, 2, 2, 1, 1][1 + n % 10] AS g FROM range($nodes) t (n))
"""
# Uniform numbers from hashes; a normal one by Box and Muller. A lane begins before the year, so it begins busy.
_JOBS: Final = """
INSERT INTO jobs BY NAME
WITH lengths AS (
    SELECT *, greatest(120, least($longest, exp(ln(21600) + 1.2 * sqrt(-2 * ln(u1)) * cos(2 * pi() * u2))))::BIGINT AS d
    FROM (
        SELECT node_no, gpus, first_gpu, k,
            (hash(node_no, first_gpu, k, 1) % 999999 + 1) / 1e6 AS u1,
            (hash(node_no, first_gpu, k, 2) % 1000000) / 1e6 AS u2
        FROM lanes, range($per_lane) t (k)
    )
),
placed AS (
    SELECT *, $begin - hash(node_no, first_gpu) % 86400
        + sum(d + 60) OVER (PARTITION BY node_no, first_gpu ORDER BY k) - d AS s
    FROM lengths
),
kept AS (SELECT *, row_number() OVER (ORDER BY s) AS i FROM placed WHERE s + d > $begin AND s < $now),
mine AS (
    SELECT *, floor($users * pow((hash(i, 5) % 1000000) / 1e6, 2))::BIGINT AS u, s + d >= $now AS open FROM kept
)
SELECT
    'bench' AS cluster, i AS job_id, s::BIGINT AS run_start, s::BIGINT - 300 AS submit, i::VARCHAR AS printed_id,
    'train' || i % 97 AS name, 'user' || u AS "user", 'account' || u % 40 AS account, 'users' AS "group",
    'gpu' AS "partition", 'normal' AS qos, 345600 AS time_limit_s, 'cpu=8,gres/gpu=' || gpus AS req_tres,
    'sbatch --gres=gpu:a100:' || gpus || ' train.sh' AS submit_line, hash(i, 2) % 20 = 0 AS interactive,
    s::BIGINT AS "start", 'gpu' || node_no AS nodes, 1 AS n_nodes, 8 * gpus AS cpus, gpus, 'a100' AS gpu_type,
    'cpu=8,gres/gpu:a100=' || gpus AS alloc_tres, 68719476736 AS mem_req_b,
    CASE WHEN NOT open THEN (s + d)::BIGINT END AS "end", least(d, $now - s)::BIGINT AS elapsed_s, 0 AS suspended_s,
    CASE WHEN open THEN 'RUNNING' WHEN hash(i, 6) % 8 = 0 THEN 'FAILED' ELSE 'COMPLETED' END AS state,
    first_gpu AS restarts,
    CASE WHEN NOT open THEN 3.5 * d END AS total_cpu_s, CASE WHEN NOT open THEN 17179869184 END AS max_rss_b
FROM mine
ORDER BY s
"""
# One GPU in six is idle all the time, the others have eight percents of their own in each hour, and gaps now and then.
_HOURS: Final = """
INSERT INTO hours BY NAME
SELECT
    cluster, job_id, run_start, nodes AS node, 'GPU-' || nodes || '-4f0c-9d11-' || gpu AS gpu_uuid, h AS hour_utc,
    4 AS seq, h < $now - 7200 OR "end" IS NOT NULL AS final, 1.0 AS share, a * 1000 AS t0_ms, b * 1000 AS t1_ms,
    CASE WHEN idle THEN [0] ELSE [0, 8 + j, 25 + j, 45 + j, 60 + j, 75 + j, 88 + j, 100] END::UTINYINT[] AS pct,
    CASE WHEN idle THEN [ms - gap]
        ELSE [ms // 16, ms // 16, ms // 8, ms // 16, ms // 8, ms // 4, ms // 8,
            ms - gap - ms // 16 * 3 - ms // 8 * 3 - ms // 4] END::INTEGER[] AS util_ms,
    CASE WHEN idle THEN ms - gap ELSE ms // 32 END::INTEGER AS idle_run_ms,
    CASE WHEN gap > 0 THEN ['gap'] ELSE [] END AS unknown_reason,
    CASE WHEN gap > 0 THEN [gap] ELSE [] END AS unknown_ms,
    0 AS suspended_ms, NOT idle AS proc_seen, 8589934592 + j * 1048576 AS mem_max_b, 42949672960 AS mem_total_b,
    (250.0 + j) * (b - a) AS energy_j, b * 1000 AS last_active_ms, 300.0 + j AS power_w_at_full, 400.0 AS power_limit_w,
    0.6 AS sm_ratio_at_full, 3.5 * (b - a) AS cpu_s, 17179869184 AS host_mem_max_b, 'prolog' AS map_source,
    'confirmed' AS confidence
FROM (
    SELECT *, ((b - a) * 1000)::INTEGER AS ms, CASE WHEN x % 12 = 0 THEN ms // 20 ELSE 0 END AS gap,
        (x % 12)::INTEGER AS j
    FROM (
        SELECT *, greatest("start", h) AS a, least(coalesce("end", $now), h + 3600) AS b,
            hash(job_id, gpu) % 6 = 0 AS idle, hash(job_id, gpu, h) // 7 AS x
        FROM (
            SELECT *, restarts + unnest(range(gpus)) AS gpu
            FROM jobs
            WHERE run_start > $day - $longest - 86400 AND run_start < $day + 86400 AND coalesce("end", $now) > $day
        ), range($day, least($day + 86400, $now), 3600) t (h)
        WHERE h < coalesce("end", $now) AND h + 3600 > "start"
    )
)
"""


# What the roll-up makes of the hours of a day, made at once from the jobs: the percents of as many hours as there are.
_DAYS: Final = """
INSERT INTO days BY NAME
SELECT
    (md5_number_lower("user") % 65536)::USMALLINT AS part, cluster, job_id, run_start, nodes AS node,
    'GPU-' || nodes || '-4f0c-9d11-' || gpu AS gpu_uuid, $day AS day_utc,
    (((1 << n) - 1) << first_hour)::INTEGER AS hours, 1.0 AS share, a * 1000 AS t0_ms, b * 1000 AS t1_ms,
    CASE WHEN idle THEN [0] ELSE list_concat(
        [0], range(8, 8 + k), range(25, 25 + k), range(45, 45 + k), range(60, 60 + k), range(75, 75 + k),
        range(88, 88 + k), [100]
    ) END::UTINYINT[] AS pct,
    CASE WHEN idle THEN [ms] ELSE list_concat([ms - (6 * k + 1) * each], list_resize([each], 6 * k + 1, each))
        END::INTEGER[] AS util_ms,
    CASE WHEN idle THEN ms ELSE ms // 32 END::INTEGER AS idle_run_ms, [] AS unknown_reason, [] AS unknown_ms,
    0 AS suspended_ms, NOT idle AS proc_seen, 8589934592 + k * 1048576 AS mem_max_b, 42949672960 AS mem_total_b,
    (250.0 + k) * (b - a) AS energy_j, b * 1000 AS last_active_ms, 300.0 + k AS power_w_at_full, each AS power_full_ms,
    400.0 AS power_limit_w, 0.6 AS sm_ratio_at_full, each AS sm_full_ms, 0 AS hang_ms, 3.5 * (b - a) AS cpu_s,
    ms AS cpu_known_ms, 17179869184 AS host_mem_max_b, 'prolog' AS map_source, 'confirmed' AS confidence
FROM (
    SELECT *, (a - $day) // 3600 AS first_hour, ((b - 1 - $day) // 3600 - first_hour + 1)::INTEGER AS n,
        least(n, 12) AS k,
        ((b - a) * 1000)::INTEGER AS ms, ms // (6 * k + 2) AS each, hash(job_id, gpu) % 6 = 0 AS idle
    FROM (
        SELECT *, unnest(range(gpus)) AS gpu, greatest("start", $day) AS a, least("end", $day + 86400) AS b
        FROM jobs
        WHERE "end" < $before AND "end" > $day AND run_start < $day + 86400
    )
)
ORDER BY part
"""


def roll_up_at_once(path: Path, before: int) -> None:
    """Put days in the place of all hours that a roll-up until `before` would take, without its time."""
    before -= before % DAY_S
    db = Database.open(path, "hub", {"threads": THREADS, "memory_limit": "4GB"})
    first = int(db.execute("SELECT min(run_start) FROM jobs").fetchall()[0][0])
    db.execute("DELETE FROM days")
    db.execute(
        'DELETE FROM hours h USING (SELECT cluster, job_id, run_start FROM jobs WHERE "end" < $before) j'
        " WHERE h.hour_utc < $before AND h.cluster = j.cluster AND h.job_id = j.job_id AND h.run_start = j.run_start",
        {"before": before},
    )
    for day in range(first - first % DAY_S, before, DAY_S):
        db.execute(_DAYS, {"day": day, "before": before})
    db.execute(
        "INSERT INTO marks VALUES ('rolled_until', $before) ON CONFLICT DO UPDATE SET value = $before",
        {"before": before},
    )
    db.execute("CHECKPOINT")
    db.close()


def fill(path: Path, nodes: int, days: int, now: int, hours_of_days: int) -> dict[str, int]:
    """Make the store of `days` days before the UTC second `now`; returns how many rows each table has.

    Only the last `hours_of_days` of them get hours: `roll_up_at_once` makes the days before from the jobs.
    """
    db = Database.open(path, "hub", {"threads": THREADS, "memory_limit": "4GB", "preserve_insertion_order": "false"})
    begin = (now - days * DAY_S) // DAY_S * DAY_S
    db.execute(_LANES, {"nodes": nodes})
    db.execute(
        _JOBS,
        {"begin": begin, "now": now, "longest": MAX_JOB_S, "per_lane": 3 * (days + 3), "users": USERS},
    )
    for day in range(max(begin, (now - hours_of_days * DAY_S) // DAY_S * DAY_S), now, DAY_S):
        db.execute(_HOURS, {"day": day, "now": now, "longest": MAX_JOB_S})
    db.execute("UPDATE jobs SET restarts = 0")
    db.execute("CHECKPOINT")
    counts = {
        table: int(db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])  # noqa: S608 own names
        for table in ("jobs", "hours")
    }
    db.close()
    return counts
