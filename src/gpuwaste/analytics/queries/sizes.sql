-- Runs that ended in the window, by class of size, bin of elapsed time (8 in each decade of seconds) and end state.
SELECT kind, level, x, ended, count(*) AS runs, sum(elapsed)::BIGINT AS elapsed_s, sum(elapsed * gpus)::BIGINT AS gpu_s
FROM (
    SELECT
-- include: analytics.size_class
        ,
-- include: analytics.end_state
        ,
        greatest("end" - "start", 0) AS elapsed,
        floor(log10(greatest("end" - "start", 1)) * 8)::INTEGER AS x,
        coalesce(gpus, 0) AS gpus
    FROM jobs
    WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL
-- include: analytics.scope
)
GROUP BY ALL
ORDER BY ALL
