-- Used and requested seconds of the runs that ended in the window, by partition, scheduler and block of days.
SELECT
    "partition",
    ("end" - $start) // $block AS block,
    backfilled,
    count(*) AS runs,
    sum(used)::BIGINT AS used_s,
    sum(time_limit_s)::BIGINT AS limit_s,
    count(*) FILTER (used * 10 < time_limit_s) AS tenth,
    count(*) FILTER (state = 'TIMEOUT') AS timeouts,
    sum(gpus * greatest(time_limit_s - used, 0))::BIGINT AS spare_gpu_s
FROM (
    SELECT
        "partition", "end", time_limit_s, state, greatest("end" - "start", 0) AS used, coalesce(gpus, 0) AS gpus,
-- include: analytics.backfilled
    FROM jobs
    WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL AND time_limit_s > 0
-- include: analytics.scope
)
GROUP BY ALL
ORDER BY ALL
