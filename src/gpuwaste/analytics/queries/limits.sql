-- Requested against used time of the runs that ended in the window: bins, 8 in each decade of seconds.
SELECT floor(log10(time_limit_s) * 8)::INTEGER AS x, y, backfilled, sum(runs)::BIGINT AS runs
FROM (
    SELECT time_limit_s, y, runs,
-- include: analytics.backfilled
    FROM (
        SELECT
            time_limit_s, flags,
-- include: analytics.time_bin
            AS y,
            count(*) AS runs
        FROM (
            SELECT time_limit_s, flags, "end" - "start" AS held
            FROM jobs
            WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL AND time_limit_s > 0
-- include: analytics.scope
        )
        GROUP BY ALL
    )
)
GROUP BY ALL
ORDER BY ALL
