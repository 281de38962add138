-- By how many the lines of the job table are fewer than the runs: tasks of arrays are in one line.
WITH
-- include: waste.judged_runs
,
-- include: waste.judged_tasks
SELECT count(*) - count(DISTINCT (cluster, array_job_id)) AS rolled FROM tasks WHERE NOT again
