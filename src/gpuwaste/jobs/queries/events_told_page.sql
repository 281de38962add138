-- Events that carry their data after $after, the oldest first, each with the owner of the run that it is about.
WITH page AS MATERIALIZED (SELECT * FROM told_events WHERE seq > $after ORDER BY seq LIMIT $limit),
owners AS (
    SELECT cluster, job_id, run_start, any_value("user") AS "user", any_value(account) AS account
    FROM jobs
    SEMI JOIN page USING (cluster, job_id, run_start)
    GROUP BY ALL
)
SELECT p.*, coalesce(o."user", '') AS "user", coalesce(o.account, '') AS account
FROM page p
LEFT JOIN owners o USING (cluster, job_id, run_start)
ORDER BY p.seq
