-- Each GPU of its own that is stored for the runs of the JSON array $rows, none of which began before $lo: what was known
-- of it first comes first.
WITH asked AS (
    SELECT unnest(from_json_strict($rows::JSON, '[{
        "no": "BIGINT", "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"
    }]'), recursive := true)
)
SELECT no, node, gpu_uuid
FROM (
    SELECT n.no, h.node, h.gpu_uuid, h.hour_utc AS at_utc
    FROM asked n
    JOIN hours h USING (cluster, job_id, run_start)
    WHERE h.hour_utc > $lo - 3600 AND h.share >= 1
    UNION ALL
    SELECT n.no, d.node, d.gpu_uuid, d.day_utc AS at_utc
    FROM asked n
    JOIN days d USING (cluster, job_id, run_start)
    WHERE d.day_utc > $lo - 86400 AND d.share >= 1
)
GROUP BY no, node, gpu_uuid
ORDER BY no, min(at_utc), node, gpu_uuid
