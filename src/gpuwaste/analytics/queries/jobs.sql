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
    SELECT
        ("end" - $start) // $step AS bin,
        count(*) AS ended,
        count(*) FILTER (state = 'COMPLETED') AS completed,
        count(*) FILTER (state = 'FAILED') AS failed,
        count(*) FILTER (state = 'TIMEOUT') AS timeout,
        count(*) FILTER (state = 'OUT_OF_MEMORY') AS out_of_memory,
        count(*) FILTER (state = 'CANCELLED') AS cancelled,
        count(*) FILTER (state IN ('NODE_FAIL', 'BOOT_FAIL')) AS node_fail,
    FROM jobs
    WHERE "end" >= $start AND "end" < $end
-- include: analytics.scope
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
    coalesce(ended - completed - failed - timeout - out_of_memory - cancelled - node_fail, 0) AS other,
    gpu_s::BIGINT AS gpu_s,
    cpu_s::BIGINT AS cpu_s
FROM held
LEFT JOIN submits USING (bin)
LEFT JOIN starts USING (bin)
LEFT JOIN ends USING (bin)
ORDER BY bin
