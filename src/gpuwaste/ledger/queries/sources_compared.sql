-- By how much agents' and jobstats' mean utilization of runs differ, where both have all GPUs of a run: of the runs that have
-- started since $from_hour and have ended. Percentage points; the agents' less jobstats'.
WITH runs AS (
    SELECT cluster, job_id, run_start, gpus, "start", "end", suspended_s
    FROM jobs
    WHERE run_start >= $from_hour AND gpus > 0 AND "end" IS NOT NULL
),
-- include: gpu_use
, compared AS (
    SELECT 100 * (a.used_ratio - t.used_ratio) AS difference
    FROM agent_use a
    JOIN told_use t USING (cluster, job_id, run_start)
    WHERE a.coverage >= $min_coverage AND t.coverage = 1 AND t.numbered
)
SELECT
    count(*) AS runs,
    median(abs(difference)) AS typical_pct,
    avg(difference) AS mean_pct,
    count(*) FILTER (abs(difference) > $far_pct) AS far_runs
FROM compared
