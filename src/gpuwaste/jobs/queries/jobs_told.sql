-- What an import tells anew: runs that wait, that have started, that have ended.
FROM (
    SELECT 'submitted' AS kind, cluster, job_id, run_start, submit AS at_utc
    FROM changed_jobs c
    ANTI JOIN jobs j USING (cluster, job_id, submit)
    WHERE c."start" IS NULL AND c."end" IS NULL
    UNION ALL
    SELECT 'started', cluster, job_id, run_start, "start"
    FROM changed_jobs c
    ANTI JOIN (SELECT * FROM jobs WHERE "start" IS NOT NULL) j USING (cluster, job_id, run_start)
    WHERE c."start" IS NOT NULL
    UNION ALL
    SELECT 'ended', cluster, job_id, run_start, "end"
    FROM changed_jobs c
    ANTI JOIN (SELECT * FROM jobs WHERE "end" IS NOT NULL) j USING (cluster, job_id, run_start)
    WHERE c."end" IS NOT NULL
)
