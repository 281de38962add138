-- Runs that ended in the window, by block of days: array tasks, interactive ones, those shorter than $short_s.
SELECT
    ("end" - $start) // $block AS block,
    count(*) AS runs,
    count(*) FILTER (array_job_id IS NOT NULL) AS array_runs,
    count(*) FILTER (interactive) AS interactive_runs,
    count(*) FILTER (held < $short_s) AS short_runs,
    sum(held * gpus)::BIGINT AS gpu_s,
    coalesce(sum(held * gpus) FILTER (array_job_id IS NOT NULL), 0)::BIGINT AS array_gpu_s,
    coalesce(sum(held * gpus) FILTER (interactive), 0)::BIGINT AS interactive_gpu_s,
    coalesce(sum(held * gpus) FILTER (held < $short_s), 0)::BIGINT AS short_gpu_s
FROM (
    SELECT "end", array_job_id, interactive, greatest("end" - "start", 0) AS held, coalesce(gpus, 0) AS gpus
    FROM jobs
    WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL
-- include: analytics.scope
)
GROUP BY block
ORDER BY block
