-- Counts of waits in bins (0, then 8 in each decade of seconds), by hour of the day of submission and by block of days.
SELECT hour, block, bin, sum(runs)::BIGINT AS runs
FROM (
    SELECT hour, (since - $start) // $block AS block, bin, runs
    FROM (
-- days: waits_days
    )
)
GROUP BY GROUPING SETS ((hour, bin), (block, bin))
ORDER BY ALL
