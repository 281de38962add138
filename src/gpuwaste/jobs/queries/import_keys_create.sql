-- The keys of the runs that this import has brought so far.
CREATE OR REPLACE TEMP TABLE import_keys AS SELECT cluster, job_id, run_start FROM jobs LIMIT 0
