-- Runs that ended in each block of days, and those that a node ended.
SELECT
    ("end" - $start) // $block AS block, count(*) AS ended, count(*) FILTER (state IN ('NODE_FAIL', 'BOOT_FAIL')) AS failed
FROM jobs
WHERE "end" >= $start AND "end" < $end
-- include: analytics.scope
GROUP BY block
ORDER BY block
