-- Removes what was said before $before; returns the jobs.
DELETE FROM rescored WHERE at_utc < $before RETURNING job_id
