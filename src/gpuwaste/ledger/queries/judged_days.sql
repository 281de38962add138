-- GPU-milliseconds and energy between the edges of the window, by the UTC day on which the run ended; what is open or ended later
-- is on the last day.
WITH
-- include: judged_runs
,
-- include: judged_window
,
summed AS NOT MATERIALIZED (
    SELECT
        least(coalesce("end", $now), $now, $to_s - 1) // 86400 * 86400 AS "day", 1 AS jobs, own.alloc_ms AS alloc_ms,
        own.idle_ms AS idle_ms, own.low_ms AS low_ms, own.moderate_ms AS moderate_ms, own.high_ms AS high_ms,
        own.wasted_ms AS wasted_ms, own.pending_ms AS pending_ms, own.energy_j AS energy_j, energy_ms, split_j, wasted_j,
        cpu_energy_ms, cpu_energy_j
    FROM parts
    UNION ALL
    SELECT
        "day", jobs, own.alloc_ms, own.idle_ms, own.low_ms, own.moderate_ms, own.high_ms, own.wasted_ms,
        own.pending_ms, own.energy_j, energy_ms, split_j, wasted_j, cpu_energy_ms, cpu_energy_j
    FROM day_sums
    WHERE
-- include: day_sums_of
)
SELECT
    "day",
    sum(jobs)::BIGINT AS jobs,
    sum(alloc_ms)::BIGINT AS alloc_ms,
    sum(idle_ms)::BIGINT AS idle_ms,
    sum(low_ms)::BIGINT AS low_ms,
    sum(moderate_ms)::BIGINT AS moderate_ms,
    sum(high_ms)::BIGINT AS high_ms,
    sum(wasted_ms)::BIGINT AS wasted_ms,
    sum(pending_ms)::BIGINT AS pending_ms,
    sum(energy_j) AS energy_j,
    sum(energy_ms)::BIGINT AS energy_ms,
    sum(split_j) AS split_j,
    sum(wasted_j) AS wasted_j,
    sum(cpu_energy_ms)::BIGINT AS cpu_energy_ms,
    sum(cpu_energy_j) AS cpu_energy_j
FROM summed
GROUP BY "day"
ORDER BY "day"
