-- Runs that ended in each block of days, and how many of them did not complete.
SELECT
    ("end" - $start) // $block AS block,
    count(*) AS ended,
    count(*) FILTER (state IN ('FAILED', 'OUT_OF_MEMORY')) AS failed,
    count(*) FILTER (state = 'TIMEOUT') AS timeout,
    count(*) FILTER (state = 'CANCELLED') AS cancelled
FROM jobs
WHERE "end" >= $start AND "end" < $end
-- include: analytics.scope
GROUP BY block
ORDER BY block
