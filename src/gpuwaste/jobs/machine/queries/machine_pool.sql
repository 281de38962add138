-- The most GPUs and CPUs that a cluster's runs whose nodes are not known held at the same time.
WITH changes AS (
    SELECT moment, sum(gpus) AS gpus, sum(cpus) AS cpus
    FROM (
        SELECT "start" AS moment, coalesce(gpus, 0) AS gpus, coalesce(cpus, 0) AS cpus FROM jobs
        WHERE cluster = $cluster AND "start" IS NOT NULL AND coalesce("end", $never) > "start"
        UNION ALL
        SELECT "end", -coalesce(gpus, 0), -coalesce(cpus, 0) FROM jobs
        WHERE cluster = $cluster AND "start" IS NOT NULL AND "end" > "start"
    )
    GROUP BY moment
), sums AS (
    SELECT moment, sum(gpus) OVER (ORDER BY moment) AS gpus, sum(cpus) OVER (ORDER BY moment) AS cpus FROM changes
)
SELECT min(moment) AS since, max(gpus)::BIGINT AS gpus, max(cpus)::BIGINT AS cpus,
    (
        SELECT coalesce(string_agg(DISTINCT "partition", ',' ORDER BY "partition"), '') FROM jobs WHERE cluster = $cluster
    ) AS partitions
FROM sums
HAVING max(cpus) > 0
