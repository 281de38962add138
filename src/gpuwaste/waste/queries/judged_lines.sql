-- Picks the $limit lines of the job table with the largest waste: runs, and arrays in one line (waste/rows.py).
CREATE OR REPLACE TEMP TABLE judged_lines AS
WITH
-- include: waste.judged_runs
,
-- include: waste.judged_tasks
,
lines AS (
    SELECT
        cluster, job_id, run_start, NULL::BIGINT AS array_job_id, printed_id, own.wasted_ms AS wasted_ms,
        own.alloc_ms AS alloc_ms
    FROM runs
    WHERE array_job_id IS NULL
    UNION ALL BY NAME
    SELECT cluster, job_id, run_start, printed_id, wasted_ms, alloc_ms FROM tasks WHERE again
    UNION ALL BY NAME
    SELECT
        cluster,
        array_job_id,
        CASE count(*)
            WHEN 1 THEN any_value(printed_id)
            ELSE concat(array_job_id, '_[', min(task), '-', max(task), ']')
        END AS printed_id,
        sum(wasted_ms)::BIGINT AS wasted_ms,
        sum(alloc_ms)::BIGINT AS alloc_ms
    FROM tasks
    WHERE NOT again
    GROUP BY cluster, array_job_id
)
SELECT *
FROM lines
ORDER BY wasted_ms DESC, alloc_ms DESC, cluster, printed_id
LIMIT $limit
