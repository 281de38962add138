-- How many runs are picked.
SELECT count(*) AS runs FROM picked_jobs
