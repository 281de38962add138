-- The mean number of runs that wait, in each hour of the window: from submission to start, or to the end of those that
-- never started. An hour holds what came before it, and of each change the part that lies in the hour.
WITH
spans AS NOT MATERIALIZED (
    SELECT greatest(submit, $start) - $start AS a, least(coalesce("start", "end", $now), $end) - $start AS b
    FROM jobs
    WHERE submit < $end AND coalesce("start", "end", $now) > $start
-- include: analytics.scope
),
turns AS (
    SELECT a // 3600 AS bin, count(*) AS jobs, sum(3600 - a % 3600) AS job_s FROM spans WHERE b > a GROUP BY bin
    UNION ALL
    SELECT b // 3600, -count(*), -sum(3600 - b % 3600) FROM spans WHERE b > a GROUP BY ALL
)
SELECT
    h.bin AS hour,
    (coalesce(sum(job_s), 0) + 3600 * coalesce(sum(sum(jobs)) OVER before, 0))::BIGINT AS waiting_s
FROM range(($end - $start + 3599) // 3600) h (bin)
LEFT JOIN turns USING (bin)
GROUP BY h.bin
WINDOW before AS (ORDER BY h.bin ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
ORDER BY h.bin
