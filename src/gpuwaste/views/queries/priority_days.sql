    -- Runs started, by bin of priority and of wait.
    SELECT
        ("start" - $start) // $coarse * $coarse + $start AS since,
        (ln(greatest(priority, 1)) * 3.4743558552260146 - 0.499999999)::INTEGER AS x,
        CASE WHEN held <= 0 THEN -1 ELSE
-- include: time_bin
        END AS y,
        count(*) AS runs
    FROM (
        SELECT priority, "start", "start" - submit AS held
        FROM jobs
        WHERE "start" >= $from AND "start" < $until AND priority IS NOT NULL
-- include: scope
    )
    GROUP BY ALL
