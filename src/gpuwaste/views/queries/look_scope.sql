-- Whose jobs a store has, and what they held of GPUs between the edges of the window, in GPU-seconds.
SELECT
    count(*) AS jobs,
    count(DISTINCT "user") AS users,
    any_value("user") AS "user",
    count(DISTINCT account) AS accounts,
    count(*) FILTER (gpus > 0) AS gpu_jobs,
    count(*) FILTER (gpus IS NULL) AS unknown_gpus,
    coalesce(sum(gpus * (least(coalesce("end", $now), $end) - greatest("start", $start))) FILTER (
        least(coalesce("end", $now), $end) > greatest("start", $start)
    ), 0)::BIGINT AS gpu_s
FROM jobs
WHERE true
-- include: scope
