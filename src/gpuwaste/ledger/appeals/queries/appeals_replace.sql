-- Deletes the open rows that the rows of the JSON array $rows replace.
DELETE FROM appeals
WHERE status = 'open'
    AND (cluster, job_id, run_start, kind, about, "user") IN (
        SELECT (n.cluster, n.job_id, n.run_start, n.kind, n.about, n."user")
        FROM (
            SELECT unnest(from_json_strict($rows::JSON, '[{
                "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "kind": "VARCHAR", "about": "VARCHAR",
                "user": "VARCHAR"
            }]'), recursive := true)
        ) n
    )
