-- Samples after $since_us, oldest first, with the energy counter added up again from its steps and jumps.
WITH moved AS (
    SELECT g.uuid, s.tick, s.energy_step_mj::BIGINT AS mj
    FROM sample s JOIN gpu g ON g.id = s.gpu
    WHERE s.energy_step_mj IS NOT NULL
    UNION ALL
    SELECT uuid, tick, mj FROM energy_jump
),
counter AS (
    SELECT uuid, tick, (sum(sum(mj)) OVER (PARTITION BY uuid ORDER BY tick))::BIGINT AS mj
    FROM moved
    GROUP BY uuid, tick
)
SELECT
    t.t_us, t.mono_us, g.uuid, g.instance, l.source,
    s.util_pct::DOUBLE AS util_pct, s.mem_used_kib::BIGINT * 1024 AS mem_used_b, g.mem_total_b,
    s.power_mw, g.power_limit_mw,
    CASE WHEN s.energy_step_mj IS NOT NULL THEN c.mj END AS energy_mj,
    s.sm_ratio::DOUBLE AS sm_ratio, s.procs, r.job_id, r.cluster, r.start_s, l.map_source, l.confidence, l.reason
FROM sample s
JOIN tick t ON t.id = s.tick
JOIN gpu g ON g.id = s.gpu
JOIN label l ON l.id = s.label
LEFT JOIN run r ON r.id = s.run
LEFT JOIN counter c ON c.uuid = g.uuid AND c.tick = s.tick
WHERE t.t_us > $since_us
ORDER BY t.t_us, s.tick, s.gpu, s.run;
