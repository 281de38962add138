-- Counts of waits in bins (0, then 8 in each decade of seconds), by hour of the day of submission and by block of days.
SELECT hour, block, bin, count(*) AS runs
FROM (
    SELECT
        (submit + $offset) // 3600 % 24 AS hour,
        ("start" - $start) // $block AS block,
        CASE WHEN "start" <= submit THEN 0 ELSE 1 + floor(log10("start" - submit) * 8)::INTEGER END AS bin
    FROM jobs
    WHERE "start" >= $start AND "start" < $end
-- include: analytics.scope
)
GROUP BY GROUPING SETS ((hour, bin), (block, bin))
ORDER BY ALL
