-- Removes what the changed rows of a page of history replace: the same key, and the same submission where it had not
-- ended. Runs that have ended stay: a requeued job may keep its submission, and its runs may come in different pages.
DELETE FROM jobs j
USING changed_jobs c
WHERE j.cluster = c.cluster
    AND j.job_id = c.job_id
    AND (j.run_start = c.run_start OR (j.submit = c.submit AND j."end" IS NULL))
