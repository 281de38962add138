-- By how many the lines of the job table are fewer than the runs: tasks of arrays are in one line.
WITH
-- include: judged_runs
,
-- include: judged_tasks
SELECT count(*) - count(DISTINCT (cluster, array_job_id)) AS rolled FROM tasks WHERE NOT again
