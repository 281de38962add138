-- Used and requested seconds of the runs that ended in the window, by partition, scheduler and block of days.
SELECT
    "partition", block, backfilled,
    sum(runs)::BIGINT AS runs, sum(used_s)::BIGINT AS used_s, sum(limit_s)::BIGINT AS limit_s,
    sum(within_s)::BIGINT AS within_s, sum(beyond)::BIGINT AS beyond, sum(beyond_s)::BIGINT AS beyond_s,
    sum(tenth)::BIGINT AS tenth, sum(timeouts)::BIGINT AS timeouts, sum(spare_gpu_s)::BIGINT AS spare_gpu_s
FROM (
    SELECT *, (since - $start) // $block AS block,
-- include: backfilled
    FROM (
-- days: limits_sums_days
    )
)
GROUP BY ALL
ORDER BY ALL
