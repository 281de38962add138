CREATE OR REPLACE TEMP TABLE replaced_jobs AS
SELECT DISTINCT j.cluster, j.job_id, j.run_start, j.submit, j."start", j."end"
FROM jobs j
JOIN changed_jobs c ON j.cluster = c.cluster
    AND j.job_id = c.job_id
    AND (
        j.run_start = c.run_start
        OR (
            j."end" IS NULL
            AND (j.submit = c.submit OR (j."start" IS NULL AND j.submit < c.submit))
            AND (j.cluster, j.job_id, j.run_start) NOT IN (SELECT (cluster, job_id, run_start) FROM staged_jobs)
        )
    )
;
DELETE FROM jobs j
USING replaced_jobs r
WHERE j.cluster = r.cluster AND j.job_id = r.job_id AND j.run_start = r.run_start
;
SELECT submit, "start", "end" FROM replaced_jobs
