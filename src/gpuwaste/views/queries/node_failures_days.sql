    -- Runs that a failed node ended, by day of their end from the window's start on.
    SELECT
        ("end" - $start) // 86400 * 86400 + $start AS since, cluster, job_id, run_start, printed_id, "user", nodes, "end",
        coalesce(gpus, 0) * greatest("end" - coalesce("start", "end"), 0) AS gpu_s
    FROM jobs
    WHERE "end" >= $from AND "end" < $until AND state IN {node_failed_states}
-- include: scope
