    -- Runs with a time limit that ended after they had started, by limit, bin of used time and flags.
    SELECT
        ("end" - $start) // $coarse * $coarse + $start AS since, time_limit_s, flags,
-- include: time_bin
        AS y,
        count(*) AS runs
    FROM (
        SELECT time_limit_s, flags, "end", "end" - "start" AS held
        FROM jobs
        WHERE "end" >= $from AND "end" < $until AND "start" IS NOT NULL AND time_limit_s > 0
-- include: scope
    )
    GROUP BY ALL
