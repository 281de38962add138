    -- Turns of the queue by hour from the window's start on: how many more wait after it, and the seconds of the hour at
    -- which they turn. Who waits for nothing has no turn.
    SELECT since, sum(turn)::BIGINT AS jobs, sum(turn * (moment - since))::BIGINT AS moments
    FROM (
        SELECT (moment - $start) // 3600 * 3600 + $start AS since, moment, turn
        FROM (
            SELECT submit AS moment, 1 AS turn
            FROM jobs
            WHERE submit >= $from AND submit < $until AND coalesce("start", "end", $now) > submit
-- include: scope
            UNION ALL
            SELECT "start", -1
            FROM jobs
            WHERE "start" >= $from AND "start" < $until AND "start" > submit
-- include: scope
            UNION ALL
            SELECT "end", -1
            FROM jobs
            WHERE "start" IS NULL AND "end" >= $from AND "end" < $until AND "end" > submit
-- include: scope
        )
    )
    GROUP BY since
