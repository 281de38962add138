-- Requested against used time of the runs that ended in the window: bins, 8 in each decade of seconds.
SELECT
    floor(log10(time_limit_s) * 8)::INTEGER AS x,
    floor(log10(greatest("end" - "start", 1)) * 8)::INTEGER AS y,
    backfilled,
    count(*) AS runs
FROM (
    SELECT time_limit_s, "start", "end",
-- include: analytics.backfilled
    FROM jobs
    WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL AND time_limit_s > 0
-- include: analytics.scope
)
GROUP BY ALL
ORDER BY ALL
