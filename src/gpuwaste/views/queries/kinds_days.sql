    -- Runs ended after they had started, by day from the window's start on and by kind.
    SELECT
        ("end" - $start) // 86400 * 86400 + $start AS since, array_job_id IS NOT NULL AS array_task, interactive,
        "end" - "start" < $short_s AS short,
        count(*) AS runs, coalesce(sum(greatest("end" - "start", 0) * gpus), 0) AS gpu_s
    FROM jobs
    WHERE "end" >= $from AND "end" < $until AND "start" IS NOT NULL
-- include: scope
    GROUP BY ALL
