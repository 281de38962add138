-- Keeps what the store does not hold already, column by column.
CREATE OR REPLACE TEMP TABLE changed_jobs AS
SELECT * FROM staged_jobs
EXCEPT
SELECT j.* FROM jobs j SEMI JOIN staged_jobs USING (cluster, job_id, run_start)
