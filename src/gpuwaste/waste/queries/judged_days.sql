-- GPU-milliseconds between the edges of the window, by the UTC day on which the run ended; what is open or ended later
-- is on the last day.
WITH
-- include: waste.judged_runs
,
-- include: waste.judged_window
SELECT
    least(coalesce("end", $now), $now, $to_s - 1) // 86400 * 86400 AS "day",
    count(*) AS jobs,
    sum(own.alloc_ms)::BIGINT AS alloc_ms,
    sum(own.idle_ms)::BIGINT AS idle_ms,
    sum(own.low_ms)::BIGINT AS low_ms,
    sum(own.moderate_ms)::BIGINT AS moderate_ms,
    sum(own.high_ms)::BIGINT AS high_ms,
    sum(own.wasted_ms)::BIGINT AS wasted_ms
FROM parts
GROUP BY "day"
ORDER BY "day"
