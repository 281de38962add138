CREATE OR REPLACE TEMP TABLE detailed_runs AS
SELECT j.submit, j."start", j."end"
FROM jobs j
SEMI JOIN detailed_jobs USING (cluster, job_id, run_start)
;
-- include: jobs_details_set
;
SELECT submit, "start", "end" FROM detailed_runs
