-- GPUs that the driver lost while a run held them, in hours since $since: by run and GPU, with the run's owner.
WITH lost AS (
    SELECT
        cluster, job_id, run_start, node, gpu_uuid, min(hour_utc) AS since,
        sum(unknown_ms[list_position(unknown_reason, 'gpu_lost')]) AS lost_ms
    FROM hours
    WHERE hour_utc >= $since AND list_contains(unknown_reason, 'gpu_lost')
    GROUP BY ALL
),
owners AS (
    SELECT cluster, job_id, run_start, any_value("user") AS "user", any_value(account) AS account
    FROM jobs
    SEMI JOIN lost USING (cluster, job_id, run_start)
    GROUP BY ALL
)
SELECT l.*, coalesce(o."user", '') AS "user", coalesce(o.account, '') AS account
FROM lost l
LEFT JOIN owners o USING (cluster, job_id, run_start)
WHERE l.lost_ms > 0
ORDER BY l.since, l.job_id, l.gpu_uuid
LIMIT $limit
