    -- Runs ended, by day from the window's start on and by state, with what they held until then as in starts_days.
    SELECT
        since, state, count(*) AS n, sum(gpus) AS gpus, sum(cpus) AS cpus,
        sum(gpus * moment) AS gpu_moments, sum(cpus * moment) AS cpu_moments
    FROM (
        SELECT
            ("end" - $start) // 86400 * 86400 + $start AS since, state, "end" - since AS moment,
            CASE WHEN "end" >= "start" THEN gpus END AS gpus,
            CASE WHEN "end" >= "start" THEN cpus END AS cpus
        FROM jobs
        WHERE "end" >= $from AND "end" < $until
-- include: scope
    )
    GROUP BY ALL
