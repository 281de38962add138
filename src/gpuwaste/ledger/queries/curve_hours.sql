-- What the ledger has of a run's GPUs on $nodes: one row for each GPU and hour, or day that was summed up.
WITH rows AS (
    SELECT node, gpu_uuid, t0_ms, t1_ms, pct, util_ms, mem_max_b, energy_j, cpu_s,
        list_sum(util_ms) AS cpu_ms
    FROM hours
    WHERE cluster = $cluster AND job_id = $job_id AND run_start = $start AND list_contains($nodes::VARCHAR[], node)
    UNION ALL
    SELECT node, gpu_uuid, t0_ms, t1_ms, pct, util_ms, mem_max_b, energy_j, cpu_s, cpu_known_ms AS cpu_ms
    FROM days
    WHERE cluster = $cluster AND job_id = $job_id AND run_start = $start AND list_contains($nodes::VARCHAR[], node)
)
SELECT
    node, gpu_uuid, t0_ms, t1_ms,
    round(list_dot_product(pct::DOUBLE[], util_ms::DOUBLE[]) / nullif(list_sum(util_ms), 0), 2)::DOUBLE AS util_pct,
    mem_max_b,
    round(energy_j / nullif((t1_ms - t0_ms) / 1000, 0), 1)::DOUBLE AS power_w,
    round(cpu_s / nullif(cpu_ms / 1000, 0), 2)::DOUBLE AS cpus
FROM rows
ORDER BY node, gpu_uuid, t0_ms
LIMIT $most;
