-- Adds the keys of the scratch table to those that this import has brought.
INSERT INTO import_keys
SELECT cluster, job_id, run_start FROM staged_jobs ANTI JOIN import_keys USING (cluster, job_id, run_start)
