-- Removes the hours that were added up, as they were read: one that was corrected since is not among them.
DELETE FROM hours h
USING rollup_due d
WHERE h.hour_utc >= $day
    AND h.hour_utc < $day + 86400
    AND h.final
    AND h.cluster = d.cluster
    AND h.job_id = d.job_id
    AND h.run_start = d.run_start
    AND h.node = d.node
    AND h.gpu_uuid = d.gpu_uuid
    AND h.hour_utc = d.hour_utc
    AND h.seq = d.seq
