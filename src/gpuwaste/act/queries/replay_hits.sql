-- For each of $afters and each user: the runs that a rule would have hit, each at its first instant in the first stretch
-- that lasts so long and matches (table matched). Right: no GPU of the run was active again before its end.
WITH steps AS (SELECT unnest($afters::BIGINT[]) AS threshold_s),
found AS (
    SELECT
        s.threshold_s,
        l.cluster,
        l.job_id,
        l.run_start,
        l.gpus,
        l.at_utc,
        l.until_s,
        l.ended,
        l.woke
    FROM looked l
    SEMI JOIN matched m ON m.place = l.place
    JOIN steps s ON l.after_s >= s.threshold_s
    QUALIFY row_number() OVER (PARTITION BY s.threshold_s, l.cluster, l.job_id, l.run_start ORDER BY l.at_utc) = 1
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
