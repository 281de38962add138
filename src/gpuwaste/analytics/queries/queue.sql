-- The mean number of runs that wait, in each hour of the window: from submission to start, or to the end of those that
-- never started. Each run counts from its submission and against that from the end of its wait: of hour h, whose end
-- is e, a change at t has the part e - t.
WITH
spans AS NOT MATERIALIZED (
    SELECT greatest(submit, $start) - $start AS a, coalesce("start", "end", $now) - $start AS b
    FROM jobs
    WHERE submit < $end AND coalesce("start", "end", $now) > $start AND coalesce("start", "end", $now) > submit
-- include: analytics.scope
),
turns AS (
    SELECT a // 3600 AS bin, count(*) AS jobs, sum(a) AS moments FROM spans GROUP BY bin
    UNION ALL
    SELECT b // 3600, -count(*), -sum(b) FROM spans WHERE b < $end - $start GROUP BY ALL
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
