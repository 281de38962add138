-- The ends of the runs of the JSON array $runs that ended a day before $lo or later.
SELECT j."end"
FROM jobs j
SEMI JOIN (
    SELECT unnest(from_json_strict($runs::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'),
        recursive := true)
) n ON j.cluster = n.cluster AND j.job_id = n.job_id AND j.run_start = n.run_start
WHERE j."end" >= $lo - 86400
