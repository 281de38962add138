-- Appends the changed rows, the earliest run first.
INSERT INTO accounted_use BY NAME
SELECT * FROM changed_uses ORDER BY run_start, job_id, node, gpu
