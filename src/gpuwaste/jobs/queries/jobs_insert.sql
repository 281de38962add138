-- Appends the changed rows, the earliest first.
INSERT INTO jobs SELECT * FROM changed_jobs ORDER BY run_start, job_id
