-- Follows table `chosen`: the energy of its runs' own GPUs, joules, by first and last UTC hour in which it was drawn: one
-- hour, but for what is added up by day.
spans AS (
    SELECT h.cluster, h.job_id, h.run_start, h.hour_utc AS first_utc, h.hour_utc AS last_utc, h.energy_j
    FROM hours h
    SEMI JOIN chosen USING (cluster, job_id, run_start)
    WHERE h.hour_utc > $from_s - 3600 AND h.hour_utc < $to_s AND h.energy_j > 0 AND h.share >= 1
    UNION ALL
    SELECT
        d.cluster,
        d.job_id,
        d.run_start,
        d.t0_ms // 3600000 * 3600 AS first_utc,
        greatest(d.t1_ms - 1, d.t0_ms) // 3600000 * 3600 AS last_utc,
        d.energy_j
    FROM days d
    SEMI JOIN chosen USING (cluster, job_id, run_start)
    WHERE d.day_utc > $from_s - 86400 AND d.day_utc < $to_s AND d.energy_j > 0 AND d.share >= 1
)
