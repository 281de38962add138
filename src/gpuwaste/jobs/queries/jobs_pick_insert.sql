-- Appends the picked runs in the order of users.
INSERT INTO jobs BY NAME
SELECT * FROM jobs_picked ORDER BY "user", run_start, job_id
