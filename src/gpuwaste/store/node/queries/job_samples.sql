-- The samples of the run of $job_id that began at $start, after $since_us up to $until_us, added up by GPU and by intervals
-- of $width_us. Where sources disagree about a GPU's job, the sample is nobody's.
SELECT
    g.uuid, g.instance, max(g.mem_total_b) AS mem_total_b, max(g.power_limit_mw) AS power_limit_mw,
    (t.t_us - $since_us - 1) // $width_us AS slot,
    count(s.util_pct) AS util_pct_n, sum(s.util_pct)::DOUBLE AS util_pct_sum,
    min(s.util_pct)::DOUBLE AS util_pct_min, max(s.util_pct)::DOUBLE AS util_pct_max,
    count(s.sm_ratio) AS sm_pct_n, sum(s.sm_ratio)::DOUBLE * 100 AS sm_pct_sum,
    min(s.sm_ratio)::DOUBLE * 100 AS sm_pct_min, max(s.sm_ratio)::DOUBLE * 100 AS sm_pct_max,
    count(s.mem_used_kib) AS mem_used_b_n, sum(s.mem_used_kib)::DOUBLE * 1024 AS mem_used_b_sum,
    min(s.mem_used_kib)::DOUBLE * 1024 AS mem_used_b_min, max(s.mem_used_kib)::DOUBLE * 1024 AS mem_used_b_max,
    count(s.power_mw) AS power_w_n, sum(s.power_mw)::DOUBLE / 1000 AS power_w_sum,
    min(s.power_mw)::DOUBLE / 1000 AS power_w_min, max(s.power_mw)::DOUBLE / 1000 AS power_w_max
FROM sample s
JOIN tick t ON t.id = s.tick
JOIN gpu g ON g.id = s.gpu
JOIN label l ON l.id = s.label
JOIN run r ON r.id = s.run
WHERE r.job_id = $job_id AND coalesce(r."start", $start) = $start AND t.t_us > $since_us AND t.t_us <= $until_us
    AND l.confidence <> 'conflict'
GROUP BY g.uuid, g.instance, slot;
