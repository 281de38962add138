-- What the store holds of the runs of the scratch table.
CREATE OR REPLACE TEMP TABLE known_jobs AS
SELECT j.* FROM jobs j SEMI JOIN staged_jobs USING (cluster, job_id, run_start)
