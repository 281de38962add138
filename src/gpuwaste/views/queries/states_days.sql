    -- Runs ended, by user, account and state.
    SELECT ("end" - $start) // $coarse * $coarse + $start AS since, "user", account, state, count(*) AS n
    FROM jobs
    WHERE "end" >= $from AND "end" < $until
-- include: scope
    GROUP BY ALL
