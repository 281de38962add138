-- How many runs have new details.
SELECT count(*) AS runs FROM detailed_jobs
