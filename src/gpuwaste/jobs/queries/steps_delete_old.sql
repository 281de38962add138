-- Removes the steps that the changed ones replace.
DELETE FROM steps s
USING changed_steps c
WHERE s.cluster = c.cluster AND s.job_id = c.job_id AND s.run_start = c.run_start AND s.step = c.step
