CREATE OR REPLACE TEMP TABLE replaced_jobs AS
SELECT DISTINCT j.cluster, j.job_id, j.run_start, j.submit, j."start", j."end"
FROM jobs j
JOIN changed_jobs c ON j.cluster = c.cluster
-- include: jobs_replaced
;
DELETE FROM jobs j
USING replaced_jobs r
WHERE j.cluster = r.cluster AND j.job_id = r.job_id AND j.run_start = r.run_start
;
SELECT submit, "start", "end" FROM replaced_jobs
