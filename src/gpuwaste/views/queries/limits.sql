-- Used against requested time of the runs that ended in the window: bins, 8 in each decade of seconds.
SELECT floor(log10(time_limit_s) * 8)::INTEGER AS x, y, backfilled, sum(runs)::BIGINT AS runs
FROM (
    SELECT time_limit_s, y, runs,
-- include: backfilled
    FROM (
-- days: limits_days
    )
)
GROUP BY ALL
ORDER BY ALL
