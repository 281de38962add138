-- What the ledger says of the GPUs of the runs of the events after $after.
WITH told AS (
    SELECT DISTINCT cluster, job_id, run_start
    FROM (SELECT * FROM events WHERE seq > $after ORDER BY seq LIMIT $limit)
    WHERE kind IN ('ended', 'ledger')
),
runs AS (
    SELECT cluster, job_id, run_start, gpus, "start", "end", suspended_s
    FROM jobs
    SEMI JOIN told USING (cluster, job_id, run_start)
    WHERE gpus > 0 AND "end" IS NOT NULL
),
-- include: gpu_use
SELECT * FROM gpu_use
