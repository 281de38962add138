-- The $most newest completed runs of $user whose comment ties them to $program, with the GPU memory that the ledger saw of
-- a whole GPU, and the median run time that was expected when they were submitted.
WITH runs AS (
    SELECT cluster, job_id, run_start, submit, "end", elapsed_s, name, gpus, gpu_type, program, verdict_id
    FROM jobs
    WHERE cluster = $cluster AND "user" = $user AND state = 'COMPLETED' AND "end" IS NOT NULL AND elapsed_s > 0
        AND starts_with(program, $program)
    ORDER BY "end" DESC, job_id DESC
    LIMIT $most
),
seen AS (
    SELECT cluster, job_id, run_start, share, mem_max_b, mem_total_b FROM hours SEMI JOIN runs USING (cluster, job_id, run_start)
    UNION ALL
    SELECT cluster, job_id, run_start, share, mem_max_b, mem_total_b FROM days SEMI JOIN runs USING (cluster, job_id, run_start)
),
memory AS (
    SELECT cluster, job_id, run_start, max(mem_max_b) AS mem_max_b, arg_max(mem_total_b, mem_max_b) AS mem_total_b
    FROM seen
    WHERE share = 1
    GROUP BY cluster, job_id, run_start
),
said AS (
    SELECT id, max(TRY_CAST(json_extract_string(quantiles, '$.walltime."0.5"') AS DOUBLE)) AS predicted_s
    FROM verdicts
    WHERE id IN (SELECT verdict_id FROM runs WHERE verdict_id <> '') AND "user" = $user
    GROUP BY id
)
SELECT
    r.submit, r."end", r.elapsed_s AS run_s, r.name, r.program,
    coalesce(r.gpus, 0) AS gpus, r.gpu_type,
    m.mem_max_b AS gpu_mem_max_b, m.mem_total_b AS gpu_mem_total_b,
    CASE WHEN v.predicted_s > 0 AND isfinite(v.predicted_s) THEN v.predicted_s END AS predicted_s
FROM runs r
LEFT JOIN memory m USING (cluster, job_id, run_start)
LEFT JOIN said v ON v.id = r.verdict_id
ORDER BY r."end" DESC, r.job_id DESC
