-- Runs that ended in the window because a node failed, in order; those within $gap_s of each other are one cluster of
-- failures.
SELECT *, sum(first::INTEGER) OVER (PARTITION BY cluster ORDER BY "end", job_id, run_start) AS number
FROM (
    SELECT
        cluster, job_id, run_start, printed_id, "user", nodes, "end",
        coalesce(gpus, 0) * greatest("end" - coalesce("start", "end"), 0) AS gpu_s,
        coalesce("end" - lag("end") OVER (PARTITION BY cluster ORDER BY "end", job_id, run_start) > $gap_s, true) AS first
    FROM jobs
    WHERE "end" >= $start AND "end" < $end AND state IN ('NODE_FAIL', 'BOOT_FAIL')
-- include: analytics.scope
)
ORDER BY "end", job_id, run_start
LIMIT $limit
