-- Follows judged_runs: the tasks of arrays, and whether each is a run that its job had before another.
tasks AS (
    SELECT
        cluster, job_id, run_start, state, "partition", name, cause_kinds, array_job_id, coalesce(array_task_id, 0) AS task, printed_id,
        own.wasted_ms AS wasted_ms, own.alloc_ms AS alloc_ms,
        state = 'REQUEUED' OR run_start < max(run_start) OVER (PARTITION BY cluster, job_id) AS again
    FROM runs
    WHERE array_job_id IS NOT NULL
)
