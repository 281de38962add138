-- Runs submitted, started and ended in each step of the window, and what was held, cut at its edges.
WITH
-- include: analytics.held_steps
,
submits AS (
    SELECT (submit - $start) // $step AS bin, count(*) AS submitted
    FROM jobs
    WHERE submit >= $start AND submit < $end
-- include: analytics.scope
    GROUP BY bin
),
starts AS (
    SELECT ("start" - $start) // $step AS bin, count(*) AS started
    FROM jobs
    WHERE "start" >= $start AND "start" < $end
-- include: analytics.scope
    GROUP BY bin
),
ends AS (
    SELECT bin,
-- include: analytics.state_sums
    FROM (
        SELECT ("end" - $start) // $step AS bin, state, count(*) AS n
        FROM jobs
        WHERE "end" >= $start AND "end" < $end
-- include: analytics.scope
        GROUP BY ALL
    )
    GROUP BY bin
)
SELECT
    bin,
    bin * $step // $block AS block,
    coalesce(submitted, 0) AS submitted,
    coalesce(started, 0) AS started,
    coalesce(ended, 0) AS ended,
    coalesce(completed, 0) AS completed,
    coalesce(failed, 0) AS failed,
    coalesce(timeout, 0) AS timeout,
    coalesce(out_of_memory, 0) AS out_of_memory,
    coalesce(cancelled, 0) AS cancelled,
    coalesce(node_fail, 0) AS node_fail,
    coalesce(other, 0) AS other,
    gpu_s::BIGINT AS gpu_s,
    cpu_s::BIGINT AS cpu_s
FROM held
LEFT JOIN submits USING (bin)
LEFT JOIN starts USING (bin)
LEFT JOIN ends USING (bin)
ORDER BY bin
