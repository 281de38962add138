-- Forgets what was judged of the runs of the JSON array $runs, whose hours from $lo on have changed; returns their ends.
DELETE FROM judged r
USING (
    SELECT unnest(from_json_strict($runs::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'),
        recursive := true)
) n
WHERE r."end" >= $lo - 86400
    AND r.cluster = n.cluster
    AND r.job_id = n.job_id
    AND r.run_start = n.run_start
RETURNING r."end"
