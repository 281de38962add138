-- Removes what the changed rows replace: the same key; the same submission under a key that accounting no longer
-- tells, where it had not ended (it had not started then, or its start was set again: a requeue may keep the
-- submission, and runs that have ended stay); and what still waits of an older job with that id. Returns its times.
DELETE FROM jobs j
USING changed_jobs c
WHERE j.cluster = c.cluster
    AND j.job_id = c.job_id
    AND (
        j.run_start = c.run_start
        OR (
            j."end" IS NULL
            AND (j.submit = c.submit OR (j."start" IS NULL AND j.submit < c.submit))
            AND (j.cluster, j.job_id, j.run_start) NOT IN (SELECT (cluster, job_id, run_start) FROM staged_jobs)
        )
    )
RETURNING submit, "start", "end"
