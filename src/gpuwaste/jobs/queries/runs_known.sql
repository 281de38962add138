-- Which of the runs of the JSON array $runs accounting has, with where and until when they ran.
SELECT j.cluster, j.job_id, j.run_start, j."end", j.nodes
FROM (
    SELECT unnest(from_json_strict($runs::JSON, '[{"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}]'),
        recursive := true)
) n
JOIN jobs j ON j.cluster = n.cluster AND j.job_id = n.job_id AND j.run_start = n.run_start
