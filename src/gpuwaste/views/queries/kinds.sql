-- Runs that ended in the window, by block of days: array tasks, interactive ones, those shorter than $short_s.
SELECT
    (since - $start) // $block AS block,
    sum(runs)::BIGINT AS runs,
    coalesce(sum(runs) FILTER (array_task), 0)::BIGINT AS array_runs,
    coalesce(sum(runs) FILTER (interactive), 0)::BIGINT AS interactive_runs,
    coalesce(sum(runs) FILTER (short), 0)::BIGINT AS short_runs,
    sum(gpu_s)::BIGINT AS gpu_s,
    coalesce(sum(gpu_s) FILTER (array_task), 0)::BIGINT AS array_gpu_s,
    coalesce(sum(gpu_s) FILTER (interactive), 0)::BIGINT AS interactive_gpu_s,
    coalesce(sum(gpu_s) FILTER (short), 0)::BIGINT AS short_gpu_s
FROM (
-- days: kinds_days
)
GROUP BY block
ORDER BY block
