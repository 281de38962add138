-- Used and requested seconds of the runs that ended in the window, by partition and block of days.
SELECT
    "partition",
    ("end" - $start) // $block AS block,
    count(*) AS runs,
    sum(greatest("end" - "start", 0))::BIGINT AS used_s,
    sum(time_limit_s)::BIGINT AS limit_s,
    count(*) FILTER (("end" - "start") * 10 < time_limit_s) AS tenth,
    count(*) FILTER (state = 'TIMEOUT') AS timeouts,
    sum(coalesce(gpus, 0) * greatest(time_limit_s - greatest("end" - "start", 0), 0))::BIGINT AS spare_gpu_s
FROM jobs
WHERE "end" >= $start AND "end" < $end AND "start" IS NOT NULL AND time_limit_s > 0
-- include: analytics.scope
GROUP BY ALL
ORDER BY ALL
