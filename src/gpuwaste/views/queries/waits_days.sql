    -- Runs started, by hour of the day of submission and bin of wait.
    SELECT
        ("start" - $start) // $grain * $grain + $start AS since,
        (submit + $offset) // 3600 % 24 AS hour,
        CASE WHEN held <= 0 THEN 0 ELSE 1 +
-- include: time_bin
        END AS bin,
        count(*) AS runs
    FROM (
        SELECT submit, "start", "start" - submit AS held
        FROM jobs
        WHERE "start" >= $from AND "start" < $until
-- include: scope
    )
    GROUP BY ALL
