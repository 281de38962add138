-- Appends the picked days in the order of users.
INSERT INTO days BY NAME
SELECT * FROM days_picked ORDER BY part, run_start, job_id
