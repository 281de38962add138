-- GPU-seconds wasted between the edges of the window by each of the causes $order, by account. Each GPU-second of a run
-- belongs to one cause: they take their parts of the run's waste in this order. Findings are of whole runs: of one that an
-- edge cuts each has the part of what lies inside that it has of the whole.
WITH
-- include: judged_held
,
inside AS (
    SELECT cluster, job_id, run_start, wasted_ms AS inside_ms
    FROM held
    WHERE NOT $cut OR run_start >= $from_s AND coalesce("end", $now) <= $to_s
    UNION ALL
    SELECT cluster, job_id, run_start, own.wasted_ms
    FROM judged_parts
),
found AS (
    SELECT
        cluster, job_id, run_start, account, wasted_ms, unnest(cause_kinds) AS kind, 1000 * unnest(cause_s) AS cause_ms
    FROM held
    WHERE len(cause_kinds) > 0 AND wasted_ms > 0
),
ordered AS (
    SELECT
        *,
        sum(cause_ms) OVER (
            PARTITION BY cluster, job_id, run_start ORDER BY list_position($order, kind) ROWS UNBOUNDED PRECEDING
        ) AS until_ms
    FROM found
    WHERE list_contains($order, kind)
)
SELECT
    account,
    kind,
    sum((least(wasted_ms, until_ms) - least(wasted_ms, until_ms - cause_ms)) * inside_ms / wasted_ms) / 1000 AS wasted_s
FROM ordered
JOIN inside USING (cluster, job_id, run_start)
GROUP BY account, kind
ORDER BY account, kind
