-- Waits of the runs that started in the window, by partition and class of size.
SELECT
    "partition", ['gpus', 'nodes', 'cpus'][kind] AS kind, level,
    count(*) AS runs, quantile_disc(wait, [0.5, 0.95]) AS wait_s, max(wait) AS longest_s
FROM (
    SELECT "partition", kind, wait,
-- include: size_class
    FROM (
        SELECT "partition",
-- include: size
            ,
-- include: wait
        FROM jobs
        WHERE "start" >= $start AND "start" < $end
-- include: scope
    )
)
GROUP BY ALL
ORDER BY runs DESC, "partition", kind, level
