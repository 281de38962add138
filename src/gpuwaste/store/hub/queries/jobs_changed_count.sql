-- How many rows of an import are new or different.
SELECT count(*) AS changed FROM changed_jobs
