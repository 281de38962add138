-- Runs that ended in the window, by block of days: array tasks, interactive ones, those shorter than $short_s.
SELECT
    block,
    sum(runs)::BIGINT AS runs,
    coalesce(sum(runs) FILTER (array_task), 0)::BIGINT AS array_runs,
    coalesce(sum(runs) FILTER (interactive), 0)::BIGINT AS interactive_runs,
    coalesce(sum(runs) FILTER (short), 0)::BIGINT AS short_runs,
    sum(gpu_s)::BIGINT AS gpu_s,
    coalesce(sum(gpu_s) FILTER (array_task), 0)::BIGINT AS array_gpu_s,
    coalesce(sum(gpu_s) FILTER (interactive), 0)::BIGINT AS interactive_gpu_s,
    coalesce(sum(gpu_s) FILTER (short), 0)::BIGINT AS short_gpu_s
FROM (
    SELECT
        ("end" - $start) // $block AS block, array_job_id IS NOT NULL AS array_task, interactive,
        "end" - "start" < $short_s AS short,
        count(*) AS runs, coalesce(sum(greatest("end" - "start", 0) * gpus), 0) AS gpu_s
    FROM jobs
    WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL
-- include: analytics.scope
    GROUP BY ALL
)
GROUP BY block
ORDER BY block
