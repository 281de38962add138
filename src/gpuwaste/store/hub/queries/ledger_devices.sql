-- The GPUs of the runs that a report covers.
WITH runs AS (
    SELECT cluster, job_id, run_start
    FROM jobs
    WHERE "start" IS NOT NULL
        AND "start" < $to_s
        AND ("end" IS NULL OR "end" > $from_s)
        AND ($user IS NULL OR "user" = $user)
        AND ($account IS NULL OR account = $account)
        AND ($cluster IS NULL OR cluster = $cluster)
        AND ($accounts IS NULL OR list_contains($accounts::VARCHAR[], account) OR "user" = $reader)
        AND ($running_only = false OR "end" IS NULL)
        AND (
            gpus > 0
            OR contains(alloc_tres, 'gres/shard')
            OR contains(alloc_tres, 'gres/mps')
            OR (cluster, job_id, run_start) IN (SELECT (cluster, job_id, run_start) FROM hours WHERE share < 1)
            OR (cluster, job_id, run_start) IN (SELECT (cluster, job_id, run_start) FROM days WHERE share < 1)
        )
),
-- include: ledger_device_sums
