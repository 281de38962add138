-- Appends the added up rows of the UTC day $day, each user's together: a user's report reads few blocks of a day. A run
-- that accounting no longer tells has no part, which ends the exchange.
INSERT INTO days BY NAME
SELECT
    r.*,
-- include: day_part
FROM rollup_rows r
LEFT JOIN (
    SELECT cluster, job_id, run_start, "user"
    FROM jobs
    WHERE "end" >= $day - 86400 AND run_start < $day + 86400
) j USING (cluster, job_id, run_start)
ORDER BY part, run_start, job_id
