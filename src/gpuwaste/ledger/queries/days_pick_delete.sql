-- Removes the picked days that still have the same part.
DELETE FROM days d
USING days_picked p
WHERE d.day_utc >= $from_s
    AND d.day_utc < $to_s
    AND d.part BETWEEN $first AND $last
    AND d.cluster = p.cluster
    AND d.job_id = p.job_id
    AND d.run_start = p.run_start
    AND d.node = p.node
    AND d.gpu_uuid = p.gpu_uuid
    AND d.day_utc = p.day_utc
    AND d.part = p.part
