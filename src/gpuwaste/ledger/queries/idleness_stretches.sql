-- From when on each GPU of the picked runs is known without a break up to its last report: after the last row with unknown
-- or suspended time, or with activity of which no row says when it was last, and after the last gap between two rows.
WITH seen AS (
    SELECT
        p.place,
        h.node,
        h.gpu_uuid,
        h.t0_ms,
        h.t1_ms,
        coalesce(list_sum(h.util_ms), 0) = h.t1_ms - h.t0_ms
            AND h.suspended_ms = 0
            AND (
                coalesce(list_max(h.pct), 0) = 0
                OR coalesce(h.last_active_ms BETWEEN h.t0_ms AND h.t1_ms, false)
            ) AS known,
        lead(h.t0_ms) OVER (PARTITION BY p.place, h.node, h.gpu_uuid ORDER BY h.hour_utc) AS next_ms
    FROM hours h
    JOIN picked_runs p USING (cluster, job_id, run_start)
    WHERE h.hour_utc >= (SELECT min(run_start) FROM picked_runs) - 7200
)
SELECT
    place,
    node,
    gpu_uuid,
    greatest(
        min(t0_ms),
        coalesce(max(CASE WHEN NOT known THEN greatest(t1_ms, coalesce(next_ms, 0)) WHEN next_ms <> t1_ms THEN greatest(next_ms, t1_ms) END), 0)
    )::BIGINT AS known_from_ms
FROM seen
GROUP BY place, node, gpu_uuid
