-- Which of the rows of the JSON array $rows, hours from $lo to $hi, were added up by day.
SELECT n.no
FROM (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "no": "BIGINT", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "node": "VARCHAR",
        "gpu_uuid": "VARCHAR", "hour_utc": "BIGINT"
    }]'), recursive := true)
) n
JOIN days d
    ON d.cluster = n.cluster
    AND d.job_id = n.job_id
    AND d.run_start = n.run_start
    AND d.node = n.node
    AND d.gpu_uuid = n.gpu_uuid
    AND d.day_utc = n.hour_utc // 86400 * 86400
WHERE d.day_utc > $lo - 86400
    AND d.day_utc <= $hi
    AND d.hours & (1 << ((n.hour_utc - d.day_utc) // 3600)) > 0
