-- Stretches in which all GPUs of a run were idle, from the hours (or, once they are merged, the days) that agents sent.
-- A row without activity is idle from its begin to its end, one with activity from its last activity to its end. What
-- else of an hour was idle is taken as one stretch at its begin, the longest that it can stand for: a replay then has
-- rather more hits that woke up again than there would have been. A row of which a part is unknown is never idle.
CREATE OR REPLACE TEMP TABLE stretches AS
WITH runs AS (
    SELECT cluster, job_id, run_start, gpus, "end", coalesce("end", $to) AS until_s, interactive
    FROM jobs
    WHERE cluster = $cluster AND gpus > 0 AND "start" IS NOT NULL AND run_start < $to AND coalesce("end", $to) > $from
),
every_row AS (
    SELECT
        cluster, job_id, run_start, t0_ms, t1_ms, pct, util_ms, idle_run_ms, unknown_ms, suspended_ms, proc_seen,
        mem_max_b, mem_total_b, last_active_ms, share, 3600 AS span_s
    FROM hours
    WHERE hour_utc < $to
    UNION ALL BY NAME
    SELECT
        cluster, job_id, run_start, t0_ms, t1_ms, pct, util_ms, idle_run_ms, unknown_ms, suspended_ms, proc_seen,
        mem_max_b, mem_total_b, last_active_ms, share, 86400 AS span_s
    FROM days
    WHERE day_utc < $to
),
seen AS MATERIALIZED (
    SELECT
        r.cluster,
        r.job_id,
        r.run_start,
        any_value(j.gpus) OVER run AS gpus,
        r.t0_ms,
        r.t1_ms,
        r.span_s,
        r.idle_run_ms,
        coalesce(list_sum(r.util_ms), 0)::BIGINT AS known_ms,
        coalesce(list_sum(r.unknown_ms), 0)::BIGINT + r.suspended_ms AS unknown_ms,
        coalesce(r.util_ms[list_position(r.pct, 0)], 0)::BIGINT AS idle_ms,
        r.last_active_ms,
        r.proc_seen AND r.mem_max_b / nullif(r.mem_total_b, 0) >= $resident_ratio AS resident
    FROM every_row r
    JOIN runs j USING (cluster, job_id, run_start)
    WHERE r.share >= 1
    WINDOW run AS (PARTITION BY r.cluster, r.job_id, r.run_start)
),
spans AS (
    SELECT cluster, job_id, run_start, t0_ms AS begin_ms, t1_ms AS end_ms
    FROM seen
    WHERE unknown_ms = 0 AND known_ms > 0 AND idle_ms = known_ms
    UNION ALL BY NAME
    SELECT cluster, job_id, run_start, last_active_ms AS begin_ms, t1_ms AS end_ms
    FROM seen
    WHERE unknown_ms = 0 AND idle_ms < known_ms AND last_active_ms >= t0_ms AND t1_ms - last_active_ms >= 60000
    UNION ALL BY NAME
    SELECT
        cluster,
        job_id,
        run_start,
        t0_ms AS begin_ms,
        t0_ms + least(idle_run_ms - CASE WHEN t1_ms - last_active_ms >= 60000 THEN t1_ms - last_active_ms ELSE 0 END, last_active_ms - t0_ms) AS end_ms
    FROM seen
    WHERE unknown_ms = 0 AND idle_ms < known_ms AND last_active_ms >= t0_ms AND span_s = 3600
),
changes AS (
    SELECT cluster, job_id, run_start, t, sum(change) AS change
    FROM (
        -- By ten seconds: the rows of an hour and of the next meet.
        SELECT cluster, job_id, run_start, (begin_ms // 10000) * 10 AS t, 1 AS change FROM spans WHERE end_ms - begin_ms >= 60000
        UNION ALL BY NAME
        SELECT cluster, job_id, run_start, (end_ms // 10000) * 10 AS t, -1 AS change FROM spans WHERE end_ms - begin_ms >= 60000
    )
    GROUP BY ALL
    HAVING sum(change) <> 0
),
depths AS (
    SELECT
        *,
        sum(change) OVER run AS depth,
        lead(t) OVER run AS next_t
    FROM changes
    WINDOW run AS (PARTITION BY cluster, job_id, run_start ORDER BY t)
),
whole AS (
    SELECT
        cluster,
        job_id,
        run_start,
        max(last_active_ms) FILTER (idle_ms < known_ms) // 1000 AS active_until,
        min(t0_ms) FILTER (idle_ms < known_ms) // 1000 AS active_from,
        bool_or(resident) AS resident
    FROM seen
    GROUP BY ALL
)
SELECT
    row_number() OVER () - 1 AS stretch,
    d.cluster,
    d.job_id,
    d.run_start,
    r.gpus,
    d.t AS begin_s,
    d.next_t AS end_s,
    r.until_s,
    r."end" IS NOT NULL AND r."end" <= $to AS ended,
    coalesce(w.active_until > d.t + 30, false) AS woke,
    coalesce(d.t <= w.active_from, true) AS untouched,
    coalesce(w.resident, false) AS resident,
    r.interactive
FROM depths d
JOIN runs r USING (cluster, job_id, run_start)
LEFT JOIN whole w USING (cluster, job_id, run_start)
WHERE d.depth >= r.gpus AND d.next_t - d.t >= $shortest AND d.next_t > $from
