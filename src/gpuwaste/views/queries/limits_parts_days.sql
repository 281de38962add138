    -- Runs of limits_days, by the whole percent of their limit that they used; 101 and more: they ran on beyond it.
    SELECT
        since,
        CASE WHEN beyond THEN greatest(least(used * 100 // time_limit_s, 200), 101)
            ELSE least(used * 100 // time_limit_s, 100) END::INTEGER AS part,
        count(*) AS runs
    FROM (
        SELECT *,
-- include: beyond_limit
        FROM (
            SELECT ("end" - $start) // $coarse * $coarse + $start AS since, greatest("end" - "start", 0) AS used, time_limit_s
            FROM jobs
            WHERE "end" >= $from AND "end" < $until AND "start" IS NOT NULL AND time_limit_s > 0
-- include: scope
        )
    )
    GROUP BY ALL
