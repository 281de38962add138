-- How many runs of a cluster were submitted in each hour.
SELECT submit // 3600 * 3600 AS hour_utc, count(*) AS runs
FROM jobs
WHERE cluster = $cluster
GROUP BY hour_utc
ORDER BY hour_utc
