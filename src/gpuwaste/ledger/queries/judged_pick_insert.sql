-- Appends the picked rows in the order of users.
INSERT INTO judged BY NAME
SELECT * EXCLUDE (stood) FROM judged_picked ORDER BY rules, "user", "end", job_id
