-- Whether the changed row c replaces job j of the same cluster.
    AND j.job_id = c.job_id
    AND (
        j.run_start = c.run_start
        OR (
            j."end" IS NULL
            AND (j.submit = c.submit OR (j."start" IS NULL AND j.submit < c.submit))
            AND (j.cluster, j.job_id, j.run_start) NOT IN (SELECT (cluster, job_id, run_start) FROM staged_jobs)
        )
    )
