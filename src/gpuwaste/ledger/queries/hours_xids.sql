-- Xid errors of GPUs while a run held them, in hours since $since: by run, GPU, hour and number, with the run's owner.
WITH seen AS (
    SELECT cluster, job_id, run_start, node, gpu_uuid, hour_utc, unnest(xid) AS xid, unnest(xids) AS count
    FROM hours
    WHERE hour_utc >= $since AND xid <> []
),
owners AS (
    SELECT cluster, job_id, run_start, any_value("user") AS "user", any_value(account) AS account
    FROM jobs
    SEMI JOIN seen USING (cluster, job_id, run_start)
    GROUP BY ALL
)
SELECT s.*, coalesce(o."user", '') AS "user", coalesce(o.account, '') AS account
FROM seen s
LEFT JOIN owners o USING (cluster, job_id, run_start)
ORDER BY s.hour_utc DESC, s.job_id, s.gpu_uuid, s.xid
LIMIT $limit
