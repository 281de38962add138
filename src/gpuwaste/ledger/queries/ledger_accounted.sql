-- Adds to what was seen of the picked runs the GPUs that jobstats has in accounting, on nodes of which no agent reported a GPU
-- of the run: as many as accounting allocated and agents did not report. A mean is no hours: only a GPU at 0 % at every reading
-- was idle all the time; of the others only the mean is known (told_pct). A GPU counts as opened if more than 1 % of its memory
-- was in use: drivers keep less than that for themselves. Between $from_s and $to_s, UTC seconds.
INSERT INTO ledger_seen BY NAME
WITH missing AS ( -- GPUs that no agent reported
    SELECT p.place, p.gpus - coalesce(s.own, 0) AS gpus
    FROM picked_runs p
    LEFT JOIN (SELECT place, count(*) AS own FROM ledger_seen WHERE share >= 1 GROUP BY place) s USING (place)
    WHERE p.gpus > coalesce(s.own, 0) AND p."start" IS NOT NULL AND p."end" IS NOT NULL
),
bounds AS (SELECT min(run_start) AS first, max(run_start) AS last FROM picked_runs SEMI JOIN missing USING (place)),
told AS (
    SELECT
        p.place,
        u.*,
        coalesce(u.peak_pct = 0, false) AS idle,
        1000 * greatest(p."start", $from_s) AS begin_ms,
        greatest(begin_ms, 1000 * least(p."end", $to_s)) AS until_ms,
        1000 * (p."end" - p."start" - p.suspended_s) AS run_ms,
        greatest(until_ms - begin_ms - 1000 * p.suspended_s, 0) AS active_ms,
        begin_ms - 1000 * p."start" AS before_ms
    FROM accounted_use u
    JOIN picked_runs p USING (cluster, job_id, run_start)
    JOIN missing m USING (place)
    WHERE
        u.run_start >= (SELECT first FROM bounds)
        AND u.run_start <= (SELECT last FROM bounds)
        AND u.source = 'jobstats'
        AND u.gpu <> ''
        AND u.mean_pct IS NOT NULL
        AND NOT EXISTS (FROM ledger_seen s WHERE s.place = p.place AND s.node = u.node)
    QUALIFY row_number() OVER (PARTITION BY p.place ORDER BY u.node, u.gpu) <= m.gpus
)
SELECT
    place,
    node,
    'jobstats:' || gpu AS gpu_uuid,
    1.0 AS share,
    begin_ms AS t0_ms,
    until_ms AS t1_ms,
    true AS final,
    CASE WHEN idle THEN active_ms ELSE 0 END AS known_ms,
    CASE WHEN $from_s > 0 AND idle THEN run_ms END AS whole_known_ms,
    CASE WHEN $from_s > 0 AND idle THEN false END AS whole_active,
    CASE WHEN idle THEN before_ms ELSE 0 END AS idle_before_ms,
    CASE WHEN idle THEN before_ms ELSE 0 END AS idle_run_before_ms,
    CASE WHEN idle THEN active_ms ELSE 0 END AS idle_ms,
    0 AS low_ms,
    0 AS high_ms,
    0 AS full_ms,
    0 AS pct_ms,
    CASE WHEN NOT idle THEN mean_pct END AS told_pct,
    CASE WHEN idle THEN active_ms ELSE 0 END AS idle_run_ms,
    0 AS suspended_ms,
    NOT idle OR coalesce(gpu_mem_max_b > 0.01 * gpu_mem_total_b, true) AS proc_seen,
    gpu_mem_max_b AS mem_max_b,
    gpu_mem_total_b AS mem_total_b,
    0 AS hang_ms,
    0 AS cpu_known_ms,
    'jobstats' AS map_source,
    'none' AS confidence
FROM told
