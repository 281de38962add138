-- Runs that ended in the window, by user and account and end state.
SELECT
    "user",
    account,
    count(*) AS ended,
    count(*) FILTER (state = 'COMPLETED') AS completed,
    count(*) FILTER (state = 'FAILED') AS failed,
    count(*) FILTER (state = 'TIMEOUT') AS timeout,
    count(*) FILTER (state = 'OUT_OF_MEMORY') AS out_of_memory,
    count(*) FILTER (state = 'CANCELLED') AS cancelled,
    count(*) FILTER (state IN ('NODE_FAIL', 'BOOT_FAIL')) AS node_fail,
    count(*) FILTER (state NOT IN
        ('COMPLETED', 'FAILED', 'TIMEOUT', 'OUT_OF_MEMORY', 'CANCELLED', 'NODE_FAIL', 'BOOT_FAIL')) AS other
FROM jobs
WHERE "end" >= $start AND "end" < $end
-- include: analytics.scope
GROUP BY "user", account
ORDER BY ended DESC, "user", account
