-- For each of $afters and each user: the runs that a rule would have hit, each at its first instant in the first stretch
-- that lasts so long and matches (table matched). Right: no GPU of the run was active again before its end.
WITH found AS (
-- include: replay_first_hits
)
SELECT
    f.threshold_s,
    j."user",
    count(*) AS hits,
    count(*) FILTER (f.ended) AS judged,
    count(*) FILTER (f.ended AND NOT f.woke) AS correct,
    coalesce(sum(f.gpus * greatest(f.until_s - f.at_utc, 0)) FILTER (f.ended AND NOT f.woke), 0)::DOUBLE AS freed_s,
    coalesce(sum(f.gpus * greatest(f.until_s - f.at_utc, 0)) FILTER (f.ended AND f.woke), 0)::DOUBLE AS lost_s
FROM found f
JOIN jobs j ON j.cluster = f.cluster AND j.job_id = f.job_id AND j.run_start = f.run_start
GROUP BY f.threshold_s, j."user"
ORDER BY f.threshold_s, j."user"
