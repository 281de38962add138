-- Appends the changed steps, the earliest first.
INSERT INTO steps BY NAME
SELECT * FROM changed_steps ORDER BY run_start, job_id, "start"
