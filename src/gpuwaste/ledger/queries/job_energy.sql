-- What agents measured of the energy of the picked runs' own GPUs, in their order: joules, NaN where nothing was measured;
-- the GPU-seconds of the rows that have a measurement; and both again of rows in which the GPU was idle all the time.
-- Runs of which agents named more GPUs than accounting gave them have nothing, nor have shared GPUs.
WITH measured AS (
    SELECT h.cluster, h.job_id, h.run_start, h.gpu_uuid, h.share, h.energy_j, h.t0_ms, h.t1_ms, h.pct, h.util_ms
    FROM hours h
    SEMI JOIN picked_jobs USING (cluster, job_id, run_start)
    UNION ALL
    SELECT d.cluster, d.job_id, d.run_start, d.gpu_uuid, d.share, d.energy_j, d.t0_ms, d.t1_ms, d.pct, d.util_ms
    FROM days d
    SEMI JOIN picked_jobs USING (cluster, job_id, run_start)
),
of_run AS (
    SELECT
        cluster,
        job_id,
        run_start,
        count(DISTINCT gpu_uuid) AS devices,
        sum(energy_j) AS joules,
        sum(t1_ms - t0_ms) FILTER (energy_j IS NOT NULL) / 1000 AS seconds,
        sum(energy_j) FILTER (idle) AS idle_joules,
        sum(t1_ms - t0_ms) FILTER (idle AND energy_j IS NOT NULL) / 1000 AS idle_seconds
    FROM (SELECT *, pct = [0] AND util_ms[1] >= 0.99 * (t1_ms - t0_ms) AS idle FROM measured)
    GROUP BY cluster, job_id, run_start
    HAVING min(share) >= 1 AND sum(energy_j) IS NOT NULL
)
SELECT
    p.gpu_type,
    coalesce(m.joules, 'nan'::DOUBLE) AS joules,
    coalesce(m.seconds, 0)::DOUBLE AS seconds,
    coalesce(m.idle_joules, 0)::DOUBLE AS idle_joules,
    coalesce(m.idle_seconds, 0)::DOUBLE AS idle_seconds
FROM picked_jobs p
LEFT JOIN of_run m
    ON m.cluster = p.cluster AND m.job_id = p.job_id AND m.run_start = p.run_start AND m.devices <= p.gpus
ORDER BY p.row_no
