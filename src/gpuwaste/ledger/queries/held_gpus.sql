-- The judged GPUs of the runs that hold them, each with the mean of its newest hour: NULL for a GPU that no agent
-- reported, and for one whose newest hour is older than $from_hour. hang_ms adds up the newest rows, back to
-- $hang_from_hour, that are all at full use without work (the limits are those of ledger_devices); NULL where the newest
-- row is at full use and has neither power nor SMs. cpu_cores is of the rows of the last two hours.
WITH recent AS (
    SELECT
        p.place,
        h.node,
        h.gpu_uuid,
        h.hour_utc,
        h.cpu_s,
        h.t1_ms - h.t0_ms AS span_ms,
        h.pct,
        h.util_ms,
        CASE
            WHEN h.sm_ratio_at_full IS NOT NULL THEN h.sm_ratio_at_full < $hang_sm_ratio
            ELSE h.power_w_at_full < $hang_power_ratio * h.power_limit_w
        END AS without_work,
        row_number() OVER (PARTITION BY p.place, h.node, h.gpu_uuid ORDER BY h.hour_utc DESC) AS number
    FROM hours h
    JOIN picked_runs p USING (cluster, job_id, run_start)
    WHERE h.hour_utc >= least($from_hour, $hang_from_hour)
),
full_use AS ( -- of a row with work it does not matter how much of it was at full use
    SELECT
        * EXCLUDE (pct, util_ms),
        CASE
            WHEN coalesce(without_work, true)
                THEN coalesce(list_sum(list_transform(pct, lambda p, i: CASE WHEN p >= $full_pct THEN util_ms[i] ELSE 0 END)), 0)
            ELSE 0
        END AS full_ms
    FROM recent
),
stuck AS (
    SELECT *, mostly_full AND coalesce(without_work, false) AS stuck
    FROM (SELECT *, full_ms >= 0.9 * span_ms AS mostly_full FROM full_use)
),
hangs AS (
    SELECT
        place,
        node,
        gpu_uuid,
        CASE
            WHEN NOT bool_or(number = 1 AND mostly_full AND without_work IS NULL)
                THEN coalesce(sum(full_ms) FILTER (hour_utc > last_work AND hour_utc >= $hang_from_hour), 0)
        END::BIGINT AS hang_ms
    FROM (SELECT *, coalesce(max(hour_utc) FILTER (NOT stuck) OVER (PARTITION BY place, node, gpu_uuid), 0) AS last_work FROM stuck)
    GROUP BY place, node, gpu_uuid
),
cpus AS (
    SELECT place, node, max(cores) AS cpu_cores
    FROM (
        SELECT place, node, gpu_uuid, 1000 * sum(cpu_s) / nullif(sum(span_ms) FILTER (cpu_s IS NOT NULL), 0) AS cores
        FROM recent
        WHERE number <= 2
        GROUP BY place, node, gpu_uuid
    )
    GROUP BY place, node
),
newest AS (
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
    g.exempt_ms,
    g.due_coverage AS coverage,
    s.hang_ms,
    c.cpu_cores
FROM ledger_gpus g
LEFT JOIN newest n USING (place, node, gpu_uuid)
LEFT JOIN hangs s USING (place, node, gpu_uuid)
LEFT JOIN cpus c USING (place, node)
ORDER BY g.place, g.node, g.gpu_uuid
