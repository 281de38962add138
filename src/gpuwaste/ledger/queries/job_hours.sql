-- What each GPU of the picked runs did over time, from hours and from days that were added up: cells of about $bin_s
-- seconds, of $devices GPUs at most. A cell reaches from the first to the last millisecond that was reported of it.
WITH seen AS (
    SELECT p.place, p.cluster, p.job_id, p.run_start, node, gpu_uuid, t0_ms, t1_ms, pct, util_ms
    FROM hours h
    JOIN picked_runs p USING (cluster, job_id, run_start)
    WHERE h.hour_utc >= $from_hour
    UNION ALL
    SELECT p.place, p.cluster, p.job_id, p.run_start, node, gpu_uuid, t0_ms, t1_ms, pct, util_ms
    FROM days d
    JOIN picked_runs p USING (part, cluster, job_id, run_start)
    WHERE d.day_utc >= $from_day
),
few AS (
    SELECT * FROM seen QUALIFY dense_rank() OVER (ORDER BY place, node, gpu_uuid) <= $devices
)
SELECT
    cluster, job_id, run_start, node, gpu_uuid,
    min(t0_ms) AS t0_ms,
    max(t1_ms) AS t1_ms,
    coalesce(sum(list_sum(util_ms)), 0)::BIGINT AS known_ms,
    sum(list_dot_product(pct::DOUBLE[], util_ms::DOUBLE[])) AS pct_ms
FROM few
GROUP BY place, cluster, job_id, run_start, node, gpu_uuid, (t0_ms // 1000 - $from_hour) // $bin_s
ORDER BY place, node, gpu_uuid, min(t0_ms)
