-- Common table expression `held`: GPU-seconds and CPU-seconds of each step of the window, to the second. A run adds
-- its size where it begins and takes it away where it ends; between them the running sum holds it.
spans AS NOT MATERIALIZED (
    SELECT
        greatest("start", $start) - $start AS a, least(coalesce("end", $now), $end) - $start AS b,
        coalesce(gpus, 0) AS gpus, coalesce(cpus, 0) AS cpus
    FROM jobs
    WHERE "start" < $end AND coalesce("end", $now) > $start
-- include: analytics.scope
),
turns AS (
    SELECT
        a // $step AS bin, sum(gpus) AS gpus, sum(cpus) AS cpus,
        sum(gpus * ($step - a % $step)) AS gpu_s, sum(cpus * ($step - a % $step)) AS cpu_s
    FROM spans
    WHERE b > a
    GROUP BY bin
    UNION ALL
    SELECT
        b // $step, -sum(gpus), -sum(cpus), -sum(gpus * ($step - b % $step)), -sum(cpus * ($step - b % $step))
    FROM spans
    WHERE b > a
    GROUP BY ALL
),
held AS (
    SELECT
        t.bin,
        coalesce(sum(gpu_s), 0) + $step * coalesce(sum(sum(gpus)) OVER before, 0) AS gpu_s,
        coalesce(sum(cpu_s), 0) + $step * coalesce(sum(sum(cpus)) OVER before, 0) AS cpu_s
    FROM range($bins) t (bin)
    LEFT JOIN turns USING (bin)
    GROUP BY t.bin
    WINDOW before AS (ORDER BY t.bin ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
