-- What was said of the runs of the JSON array $runs while they ran, the oldest first.
SELECT r.*
FROM rescored r
SEMI JOIN (
    SELECT unnest(from_json_strict(
        $runs::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'
    ), recursive := true)
) USING (cluster, job_id, run_start)
ORDER BY r.at_utc, r.job_id, r.moment
LIMIT $most
