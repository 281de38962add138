-- The actions on the runs of the JSON array $rows that are not ended, or were done.
SELECT a.*
FROM actions a
SEMI JOIN (
    SELECT unnest(
        from_json_strict($rows::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'),
        recursive := true
    )
) n USING (cluster, job_id, run_start)
WHERE a.status IN ('intended', 'approved', 'sent', 'confirmed')
ORDER BY a.decided_utc, a.id
