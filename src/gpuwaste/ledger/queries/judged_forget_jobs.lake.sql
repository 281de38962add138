CREATE OR REPLACE TEMP TABLE forgotten AS
SELECT r."end" FROM judged r SEMI JOIN changed_jobs USING (cluster, job_id, run_start)
;
DELETE FROM judged r
USING changed_jobs c
WHERE r.cluster = c.cluster AND r.job_id = c.job_id AND r.run_start = c.run_start
;
SELECT "end" FROM forgotten
