-- Runs that ended in the window, by class of size, bin of elapsed time (8 in each decade of seconds) and end state.
-- Runs are grouped by their numbers first: classes and names are made for the few groups.
SELECT
    ['gpus', 'nodes', 'cpus'][kind] AS kind, level, x, ended,
    sum(runs)::BIGINT AS runs, sum(elapsed_s)::BIGINT AS elapsed_s,
    coalesce(sum(elapsed_s * size) FILTER (kind = 1), 0)::BIGINT AS gpu_s
FROM (
    SELECT
        kind, x, size, runs, elapsed_s,
-- include: size_class
        ,
-- include: end_state
    FROM (
-- days: sizes_days
    )
)
GROUP BY ALL
ORDER BY ALL
