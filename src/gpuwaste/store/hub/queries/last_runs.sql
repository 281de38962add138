-- The last $per_key runs of each user and job name that have ended, the oldest first, with what the ledger says of their
-- GPUs and the script of their verdict.
WITH last AS MATERIALIZED (
    SELECT cluster, job_id, run_start, submit, "user", name, "start", "end", state, gpus, suspended_s, verdict_id
    FROM jobs
    WHERE cluster = $cluster AND "end" IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY "user", name ORDER BY "end" DESC, job_id DESC, run_start DESC) <= $per_key
),
runs AS (SELECT cluster, job_id, run_start, gpus, "start", "end", suspended_s FROM last WHERE gpus > 0),
-- include: gpu_use
SELECT
    l.job_id, l.submit, l."user", l.name, l."start" IS NOT NULL AS started, l."end", l.state, l.gpus,
    u.used_ratio, u.gpus_active, u.coverage, coalesce(v.script, '') AS script
FROM last l
LEFT JOIN gpu_use u ON u.cluster = l.cluster AND u.job_id = l.job_id AND u.run_start = l.run_start
LEFT JOIN (SELECT id, script FROM verdicts WHERE script <> '') v ON v.id = l.verdict_id
ORDER BY l."end", l.job_id, l.run_start
