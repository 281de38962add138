-- Whether accounting tells another user for one of the changed rows than before.
SELECT 1 AS other
FROM changed_jobs c
JOIN jobs j ON j.cluster = c.cluster AND j.job_id = c.job_id AND j.run_start = c.run_start AND j."user" <> c."user"
LIMIT 1
