    -- Used and requested seconds of the runs of limits_days, by day from the window's start on, partition and flags.
    SELECT
        since, "partition", flags,
        count(*) AS runs,
        sum(used) AS used_s,
        sum(time_limit_s) AS limit_s,
        sum(least(used, time_limit_s)) AS within_s,
        count(*) FILTER (beyond) AS beyond,
        coalesce(sum(used - time_limit_s) FILTER (beyond), 0) AS beyond_s,
        count(*) FILTER (used * 10 < time_limit_s) AS tenth,
        count(*) FILTER (state = 'TIMEOUT') AS timeouts,
        coalesce(sum(gpus * greatest(time_limit_s - used, 0)), 0) AS spare_gpu_s
    FROM (
        SELECT *,
-- include: beyond_limit
        FROM (
            SELECT
                ("end" - $start) // $grain * $grain + $start AS since, "partition", flags, time_limit_s, state,
                greatest("end" - "start", 0) AS used, gpus
            FROM jobs
            WHERE "end" >= $from AND "end" < $until AND "start" IS NOT NULL AND time_limit_s > 0
-- include: scope
        )
    )
    GROUP BY ALL
