-- Forgets what was judged of the runs that accounting tells anew; returns their ends.
DELETE FROM judged r
USING changed_jobs c
WHERE r.cluster = c.cluster AND r.job_id = c.job_id AND r.run_start = c.run_start
RETURNING r."end"
