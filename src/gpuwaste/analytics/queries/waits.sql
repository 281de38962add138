-- Waits of the runs that started in the window, by partition and class of size.
SELECT
    "partition", ['gpus', 'nodes', 'cpus'][kind] AS kind, level,
    count(*) AS runs, quantile_disc(wait, [0.5, 0.95]) AS wait_s, max(wait) AS longest_s
FROM (
    SELECT "partition", kind, wait,
-- include: analytics.size_class
    FROM (
        SELECT "partition",
-- include: analytics.size
            ,
-- include: analytics.wait
        FROM jobs
        WHERE "start" >= $start AND "start" < $end
-- include: analytics.scope
    )
)
GROUP BY ALL
ORDER BY runs DESC, "partition", kind, level
