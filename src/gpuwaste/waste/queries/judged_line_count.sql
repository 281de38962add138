-- How many lines of the job table fit.
WITH
-- include: waste.judged_runs
,
-- include: waste.judged_tasks
,
-- include: waste.judged_line_rows
SELECT count(*) AS lines FROM lines
