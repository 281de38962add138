    -- Runs that ended after they had started, by size, state and bin of elapsed time.
    SELECT
        since, kind, size, state,
-- include: time_bin
        AS x,
        count(*) AS runs,
        sum(held) AS elapsed_s
    FROM (
        SELECT
            ("end" - $start) // $coarse * $coarse + $start AS since,
-- include: size
            ,
            state, greatest("end" - "start", 0) AS held
        FROM jobs
        WHERE "end" >= $from AND "end" < $until AND "start" IS NOT NULL
-- include: scope
    )
    GROUP BY ALL
