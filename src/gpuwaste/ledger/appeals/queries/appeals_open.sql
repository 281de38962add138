-- How many open appeals of $user would stay beside the rows of the JSON array $rows.
SELECT count(DISTINCT id) AS appeals
FROM appeals
WHERE status = 'open' AND "user" = $user
    AND (cluster, job_id, run_start, kind, about) NOT IN (
        SELECT (n.cluster, n.job_id, n.run_start, n.kind, n.about)
        FROM (
            SELECT unnest(from_json_strict($rows::JSON, '[{
                "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "kind": "VARCHAR", "about": "VARCHAR"
            }]'), recursive := true)
        ) n
    )
