-- Events after $after, the oldest first, each with the run as accounting knows it now; a submission whose run has
-- started since, and so has another key, is known by its submit time.
SELECT e.seq, e.kind, e.at_utc, e.cluster AS event_cluster, e.job_id AS event_job_id, e.run_start AS event_run_start, j.*
FROM (SELECT * FROM events WHERE seq > $after ORDER BY seq LIMIT $limit) e
LEFT JOIN jobs j
    ON j.cluster = e.cluster
    AND j.job_id = e.job_id
    AND e.run_start = CASE WHEN e.kind = 'submitted' THEN j.submit ELSE j.run_start END
QUALIFY row_number() OVER (PARTITION BY e.seq ORDER BY j.run_start) = 1
ORDER BY e.seq
