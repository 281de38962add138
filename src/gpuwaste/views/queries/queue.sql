-- The mean number of runs that wait, in each hour of the window: from submission to start, or to the end of those that
-- never started. Each run counts from its submission and against that from the end of its wait: of hour h, whose end
-- is e, a change at t has the part e - t.
WITH
turns AS (
    SELECT (since - $start) // 3600 AS bin, jobs, moments + jobs * (since - $start) AS moments
    FROM (
-- days: queue_days
    )
    UNION ALL
    -- Who waits when the window begins.
    SELECT 0, count(*), 0
    FROM jobs
    WHERE submit < $start AND "start" >= $start
-- include: scope
    UNION ALL
    SELECT 0, count(*), 0
    FROM jobs
    WHERE submit < $start AND "start" IS NULL AND coalesce("end", $now) >= $start
-- include: scope
    UNION ALL
    -- Who waits now, where the window goes on after that.
    SELECT ($now - $start) // 3600, -count(*), -count(*) * ($now - $start)
    FROM jobs
    WHERE "start" IS NULL AND "end" IS NULL AND submit < $now AND $now >= $start AND $now < $end
-- include: scope
),
hours AS (
    SELECT bin, bin * 3600 AS begin, least(bin * 3600 + 3600, $end - $start) AS e
    FROM range(($end - $start + 3599) // 3600) t (bin)
)
SELECT
    h.bin AS hour,
    (e * coalesce(sum(jobs), 0) - coalesce(sum(moments), 0) + (e - begin) * coalesce(sum(sum(jobs)) OVER before, 0))::BIGINT
        AS waiting_s
FROM hours h
LEFT JOIN turns USING (bin)
GROUP BY h.bin, begin, e
WINDOW before AS (ORDER BY h.bin ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
ORDER BY h.bin
