    -- Runs started and what they hold from then on, by day from the window's start on; moments are seconds of the day,
    -- each as often as what starts at it. A run that ends before it starts holds nothing.
    SELECT
        since, count(*) AS started, sum(gpus) AS gpus, sum(cpus) AS cpus,
        sum(gpus * moment) AS gpu_moments, sum(cpus * moment) AS cpu_moments
    FROM (
        SELECT
            ("start" - $start) // 86400 * 86400 + $start AS since, "start" - since AS moment,
            CASE WHEN coalesce("end", $now) >= "start" THEN gpus END AS gpus,
            CASE WHEN coalesce("end", $now) >= "start" THEN cpus END AS cpus
        FROM jobs
        WHERE "start" >= $from AND "start" < $until
-- include: scope
    )
    GROUP BY since
