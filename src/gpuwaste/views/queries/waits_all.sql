-- The median and the 95th percentile of all waits, and how many runs waited longer than an hour.
SELECT count(*) AS runs, quantile_disc(wait, [0.5, 0.95]) AS wait_s, max(wait) AS longest_s, count(*) FILTER (wait > 3600) AS long
FROM (
    SELECT
-- include: wait
    FROM jobs
    WHERE "start" >= $start AND "start" < $end
-- include: scope
)
