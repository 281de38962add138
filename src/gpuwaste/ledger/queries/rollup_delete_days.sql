-- Removes the rows of the UTC day $day that are replaced by ones with more hours in them.
DELETE FROM days d
USING rollup_rows r
WHERE d.day_utc = $day
    AND d.cluster = r.cluster
    AND d.job_id = r.job_id
    AND d.run_start = r.run_start
    AND d.node = r.node
    AND d.gpu_uuid = r.gpu_uuid
