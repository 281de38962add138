-- How many GPUs accounting gave each of the runs of the JSON array $rows that began from $lo to $hi, where it tells.
SELECT n.no, j.gpus
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "no": "BIGINT", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"
    }]'), recursive := true)
) n
JOIN jobs j USING (cluster, job_id, run_start)
WHERE j.run_start BETWEEN $lo AND $hi AND j.gpus > 0
