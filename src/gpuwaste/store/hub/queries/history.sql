-- Events after $after, the oldest first, each with the run as accounting knows it now.
SELECT e.seq, e.kind, e.at_utc, e.cluster AS event_cluster, e.job_id AS event_job_id, e.run_start AS event_run_start, j.*
FROM (SELECT * FROM events WHERE seq > $after ORDER BY seq LIMIT $limit) e
LEFT JOIN jobs j ON j.cluster = e.cluster AND j.job_id = e.job_id AND j.run_start = e.run_start
ORDER BY e.seq
