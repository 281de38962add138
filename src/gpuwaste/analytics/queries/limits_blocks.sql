-- Used and requested seconds of the runs that ended in the window, by partition, scheduler and block of days.
SELECT
    "partition", block, backfilled,
    sum(runs)::BIGINT AS runs, sum(used_s)::BIGINT AS used_s, sum(limit_s)::BIGINT AS limit_s,
    sum(tenth)::BIGINT AS tenth, sum(timeouts)::BIGINT AS timeouts, sum(spare_gpu_s)::BIGINT AS spare_gpu_s
FROM (
    SELECT *,
-- include: analytics.backfilled
    FROM (
        SELECT
            "partition", ("end" - $start) // $block AS block, flags,
            count(*) AS runs,
            sum(used) AS used_s,
            sum(time_limit_s) AS limit_s,
            count(*) FILTER (used * 10 < time_limit_s) AS tenth,
            count(*) FILTER (state = 'TIMEOUT') AS timeouts,
            coalesce(sum(gpus * greatest(time_limit_s - used, 0)), 0) AS spare_gpu_s
        FROM (
            SELECT "partition", "end", flags, time_limit_s, state, greatest("end" - "start", 0) AS used, gpus
            FROM jobs
            WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL AND time_limit_s > 0
-- include: analytics.scope
        )
        GROUP BY ALL
    )
)
GROUP BY ALL
ORDER BY ALL
