-- Removes what a source had of a run, where it has something else now.
DELETE FROM accounted_use u
USING (SELECT DISTINCT cluster, job_id, run_start, source FROM changed_uses) c
WHERE u.cluster = c.cluster AND u.job_id = c.job_id AND u.run_start = c.run_start AND u.source = c.source
