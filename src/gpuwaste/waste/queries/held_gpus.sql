-- The judged GPUs of the runs that hold them, each with the mean of its newest hour: NULL for a GPU that no agent
-- reported, and for one whose newest hour is older than $from_hour.
WITH newest AS (
    SELECT p.place, h.node, h.gpu_uuid, h.util_ms, h.pct
    FROM hours h
    JOIN picked_runs p USING (cluster, job_id, run_start)
    WHERE h.hour_utc >= $from_hour
    QUALIFY row_number() OVER (PARTITION BY p.place, h.node, h.gpu_uuid ORDER BY h.hour_utc DESC) = 1
)
SELECT
    g.place,
    g.own,
    g.node,
    g.gpu_uuid,
    nullif(g.t0_ms, 0) AS first_ms,
    nullif(g.t1_ms, 0) AS seen_ms,
    g.last_active_ms,
    list_dot_product(n.pct::DOUBLE[], n.util_ms::DOUBLE[]) / nullif(list_sum(n.util_ms), 0) AS mean_pct,
    g.wasted_ms,
    g.exempt_ms
FROM ledger_gpus g
LEFT JOIN newest n USING (place, node, gpu_uuid)
ORDER BY g.place, g.node, g.gpu_uuid
