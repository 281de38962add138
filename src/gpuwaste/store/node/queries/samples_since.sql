-- Samples after $since_us up to $until_us, oldest first; the energy counter is left as its steps, which the reader adds up.
SELECT
    t.t_us, t.mono_us, s.tick, g.uuid, g.instance, l.source,
    s.util_pct::DOUBLE AS util_pct, s.mem_used_kib::BIGINT * 1024 AS mem_used_b, g.mem_total_b,
    s.power_mw, g.power_limit_mw, s.energy_step_mj, s.sm_ratio::DOUBLE AS sm_ratio, s.procs,
    r.job_id, r.cluster, r."start", l.map_source, l.confidence, l.reason
FROM sample s
JOIN tick t ON t.id = s.tick
JOIN gpu g ON g.id = s.gpu
JOIN label l ON l.id = s.label
LEFT JOIN run r ON r.id = s.run
WHERE t.t_us > $since_us AND t.t_us <= $until_us
ORDER BY t.t_us, s.tick, s.gpu, s.run;
