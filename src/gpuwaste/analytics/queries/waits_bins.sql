-- Counts of waits in bins (0, then 8 in each decade of seconds), by hour of the day of submission and by block of days.
SELECT hour, block, bin, sum(runs)::BIGINT AS runs
FROM (
    SELECT
        (submit + $offset) // 3600 % 24 AS hour,
        ("start" - $start) // $block AS block,
        CASE WHEN held <= 0 THEN 0 ELSE 1 +
-- include: analytics.time_bin
        END AS bin,
        count(*) AS runs
    FROM (
        SELECT submit, "start", "start" - submit AS held
        FROM jobs
        WHERE "start" >= $start AND "start" < $end
-- include: analytics.scope
    )
    GROUP BY ALL
)
GROUP BY GROUPING SETS ((hour, bin), (block, bin))
ORDER BY ALL
