-- Takes the rows of jobs_clashes out of what changed.
DELETE FROM changed_jobs c
WHERE EXISTS (FROM import_keys k WHERE k.cluster = c.cluster AND k.job_id = c.job_id AND k.run_start = c.run_start)
    AND EXISTS (
        FROM jobs j
        WHERE j.cluster = c.cluster AND j.job_id = c.job_id AND j.run_start = c.run_start AND j."end" IS NOT NULL
    )
