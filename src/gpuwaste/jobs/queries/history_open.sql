-- Runs without an end, and how many of them are past their limit by more than a day: what accounting calls runaways.
SELECT
    cluster, count(*) AS open,
    count(*) FILTER ("start" + coalesce(time_limit_s, 31536000) + 86400 < $now) AS runaway
FROM jobs
WHERE "end" IS NULL
GROUP BY cluster
ORDER BY cluster
