-- The runs that use so little that they could share a GPU.
WITH
-- include: judged_runs
SELECT * FROM runs WHERE small IS NOT NULL ORDER BY run_start, job_id
