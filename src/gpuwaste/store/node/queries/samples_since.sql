-- Samples after $since_us, oldest first, with the energy counter added up again from its steps.
WITH added AS (
    SELECT
        *,
        CASE WHEN energy_step_mj IS NOT NULL THEN
            sum(energy_step_mj) OVER (PARTITION BY g.uuid ORDER BY s.t_us)
        END::BIGINT AS energy_mj
    FROM sample s JOIN gpu g ON g.id = s.gpu
)
SELECT
    a.t_us, t.mono_us, a.uuid, a.instance, l.source,
    a.util_pct::DOUBLE AS util_pct, a.mem_used_b, a.mem_total_b, a.power_mw, a.power_limit_mw, a.energy_mj,
    a.sm_ratio::DOUBLE AS sm_ratio, a.procs, r.job_id, r.cluster, r.start_s, l.map_source, l.confidence, l.reason
FROM added a
JOIN label l ON l.id = a.label
LEFT JOIN run r ON r.id = a.run
ASOF JOIN tick t ON a.t_us >= t.t_us
WHERE a.t_us > $since_us
ORDER BY a.t_us, a.gpu, a.run;
