-- How many rows of accounting change something, and when the first of them ended.
SELECT count(*) AS changed, min("end") AS first_end FROM changed_jobs
