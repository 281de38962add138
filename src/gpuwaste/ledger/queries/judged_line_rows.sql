-- Follows judged_tasks: the lines of the job table that fit: runs, and arrays in one line where any task fits.
lines AS (
    SELECT
        cluster, job_id, run_start, NULL::BIGINT AS array_job_id, printed_id, own.wasted_ms AS wasted_ms,
        own.alloc_ms AS alloc_ms
    FROM runs
    WHERE array_job_id IS NULL AND
-- include: judged_fits
    UNION ALL BY NAME
    SELECT cluster, job_id, run_start, printed_id, wasted_ms, alloc_ms
    FROM tasks
    WHERE again AND
-- include: judged_fits
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
    HAVING bool_or(
-- include: judged_fits
    )
)
