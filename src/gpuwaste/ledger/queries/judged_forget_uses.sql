-- Forgets what was judged of the runs of whose use accounting has something new.
DELETE FROM judged r
USING (SELECT DISTINCT cluster, job_id, run_start FROM changed_uses) c
WHERE r.cluster = c.cluster AND r.job_id = c.job_id AND r.run_start = c.run_start
