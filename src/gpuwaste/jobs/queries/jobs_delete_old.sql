-- Removes what the changed rows replace: the same key; the same submission under a key that accounting no longer
-- tells, where it had not ended (it had not started then, or its start was set again: a requeue may keep the
-- submission, and runs that have ended stay); and what still waits of an older job with that id. Returns its times.
DELETE FROM jobs j
USING changed_jobs c
WHERE j.cluster = c.cluster
-- include: jobs_replaced
RETURNING submit, "start", "end"
