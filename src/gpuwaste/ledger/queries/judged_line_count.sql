-- How many lines of the job table fit.
WITH
-- include: judged_runs
,
-- include: judged_tasks
,
-- include: judged_line_rows
SELECT count(*) AS lines FROM lines
