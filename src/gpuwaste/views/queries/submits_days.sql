    -- Runs submitted, by day from the window's start on.
    SELECT (submit - $start) // 86400 * 86400 + $start AS since, count(*) AS submitted
    FROM jobs
    WHERE submit >= $from AND submit < $until
-- include: scope
    GROUP BY since
