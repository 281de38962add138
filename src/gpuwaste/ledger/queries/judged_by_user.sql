-- The judged runs of a selection, each user's together.
WITH
-- include: judged_runs
SELECT * FROM runs ORDER BY "user", run_start, job_id
