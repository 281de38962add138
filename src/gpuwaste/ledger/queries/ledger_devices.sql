-- Adds up what was seen of each GPU of the picked runs, by the thresholds given: one row per run (its place), node and
-- GPU, for ledger_gpus. Milliseconds; hang_ms is busy time at almost no power or on almost no SM. Hours before $from_hour or from
-- $to_hour on and days before $from_day are left out.
-- Where $cut_from_ms and $cut_to_ms are given, of each row counts what lies between them: of an hour or day that an edge
-- cuts the share of its time. Each millisecond stays exactly one of the classes.
CREATE OR REPLACE TEMP TABLE ledger_seen AS
WITH picked AS MATERIALIZED ( -- packed before the lambdas: on a scattered selection they cost three times as much
    SELECT h.* EXCLUDE (cluster, job_id, run_start, seq), p.place
    FROM hours h
    JOIN picked_runs p USING (cluster, job_id, run_start)
    WHERE h.hour_utc >= $from_hour AND h.hour_utc < $to_hour
    UNION ALL BY NAME
    SELECT
        d.* EXCLUDE (part, cluster, job_id, run_start, day_utc, hours),
        p.place,
        true AS final,
        d.day_utc + 3600 * floor(log2(d.hours))::BIGINT AS hour_utc -- the last that is in it
    FROM days d
    JOIN picked_runs p USING (part, cluster, job_id, run_start) -- the part lets blocks be skipped: days lie by user
    WHERE d.day_utc >= $from_day AND d.day_utc < $to_hour
),
counted AS ( -- products of lists, exact far below 2^53: a lambda that looks into another list takes three times as long
    SELECT
        *,
        coalesce(list_sum(util_ms), 0)::BIGINT AS row_known_ms,
        coalesce(util_ms[list_position(pct, 0)], 0)::BIGINT AS row_idle_ms,
        coalesce(list_dot_product(list_transform(pct, lambda p: (p > 0 AND p < $low_below)::INTEGER::DOUBLE), util_ms::DOUBLE[]), 0)::BIGINT AS row_low_ms,
        coalesce(list_dot_product(list_transform(pct, lambda p: (p > $high_above)::INTEGER::DOUBLE), util_ms::DOUBLE[]), 0)::BIGINT AS row_high_ms,
        coalesce(list_dot_product(list_transform(pct, lambda p: (p >= $full_pct)::INTEGER::DOUBLE), util_ms::DOUBLE[]), 0)::BIGINT AS row_full_ms,
        coalesce(list_dot_product(pct::DOUBLE[], util_ms::DOUBLE[]), 0)::BIGINT AS row_pct_ms,
-- include: row_energy_ms
        AS row_energy_ms,
-- include: row_idle_energy
        AS row_idle_j,
        CASE
            WHEN $cut_from_ms IS NULL OR (t0_ms >= $cut_from_ms AND t1_ms <= $cut_to_ms) THEN 1
            ELSE coalesce(greatest(least(t1_ms, $cut_to_ms) - greatest(t0_ms, $cut_from_ms), 0) / nullif(t1_ms - t0_ms, 0), 0)
        END AS part,
        CASE
            WHEN $cut_from_ms IS NULL THEN 0
            ELSE coalesce(greatest(least(t1_ms, $cut_from_ms) - t0_ms, 0) / nullif(t1_ms - t0_ms, 0), 0)
        END AS part_before
    FROM picked
),
cut AS ( -- what is whole is taken as it is
    SELECT
        * REPLACE (
            floor(idle_run_ms * part)::BIGINT AS idle_run_ms,
            round(suspended_ms * part)::BIGINT AS suspended_ms,
            CASE WHEN part = 1 THEN unknown_ms ELSE list_transform(unknown_ms, lambda ms: round(ms * part)::INTEGER) END AS unknown_ms,
            energy_j * part AS energy_j,
            round(row_energy_ms * part)::BIGINT AS energy_ms,
            row_idle_j * part AS idle_energy_j,
            coalesce(split_j, CASE WHEN row_idle_j IS NOT NULL THEN energy_j END) * part AS split_j,
            cpu_energy_j * part AS cpu_energy_j,
            round(cpu_energy_ms * part)::BIGINT AS cpu_energy_ms,
            cpu_s * part AS cpu_s,
            round(profiled_ms * part)::BIGINT AS profiled_ms,
            round(nvlink_b * part)::BIGINT AS nvlink_b,
            round(pcie_b * part)::BIGINT AS pcie_b
        ),
        floor(row_idle_ms * part)::BIGINT AS idle_ms,
        floor(row_low_ms * part)::BIGINT AS low_ms,
        floor(row_high_ms * part)::BIGINT AS high_ms,
        floor(row_full_ms * part)::BIGINT AS full_ms,
        floor(row_pct_ms * part)::BIGINT AS pct_ms,
        floor(row_idle_ms * part_before)::BIGINT AS idle_before_ms,
        floor(c.idle_run_ms * part_before)::BIGINT AS idle_run_before_ms,
        CASE
            WHEN part = 1 THEN row_known_ms
            ELSE greatest(
                round((row_known_ms + c.suspended_ms + coalesce(list_sum(c.unknown_ms), 0)) * part)
                    - round(c.suspended_ms * part)
                    - coalesce(list_sum(list_transform(c.unknown_ms, lambda ms: round(ms * part)::INTEGER)), 0),
                floor(row_idle_ms * part) + floor(row_low_ms * part) + floor(row_high_ms * part)
            )::BIGINT
        END AS known_ms
    FROM counted c
)
SELECT
    place,
    node,
    gpu_uuid,
    min(share) AS share,
    min(t0_ms) AS t0_ms,
    max(t1_ms) AS t1_ms,
    arg_max(final, hour_utc) AS final, -- of the last hour: earlier ones are final while the run goes on
    sum(known_ms)::BIGINT AS known_ms,
    CASE WHEN $cut_from_ms IS NOT NULL THEN sum(row_known_ms)::BIGINT END AS whole_known_ms,
    CASE WHEN $cut_from_ms IS NOT NULL THEN sum(row_pct_ms) > 0 END AS whole_active,
    sum(idle_before_ms)::BIGINT AS idle_before_ms,
    sum(idle_run_before_ms)::BIGINT AS idle_run_before_ms,
    sum(idle_ms)::BIGINT AS idle_ms,
    sum(low_ms)::BIGINT AS low_ms,
    sum(high_ms)::BIGINT AS high_ms,
    sum(full_ms)::BIGINT AS full_ms,
    sum(pct_ms)::BIGINT AS pct_ms,
    NULL::DOUBLE AS told_pct, -- a mean of which no hours are known (ledger_accounted)
    sum(idle_run_ms)::BIGINT AS idle_run_ms,
    flatten(list(unknown_reason) FILTER (unknown_reason <> [])) AS unknown_reason,
    flatten(list(unknown_ms) FILTER (unknown_reason <> [])) AS unknown_ms,
    sum(suspended_ms)::BIGINT AS suspended_ms,
    bool_or(proc_seen) AS proc_seen,
    max(mem_max_b) AS mem_max_b,
    max(mem_total_b) AS mem_total_b,
    sum(energy_j) AS energy_j,
    sum(energy_ms)::BIGINT AS energy_ms,
    sum(idle_energy_j) AS idle_energy_j,
    sum(split_j) AS split_j,
    sum(cpu_energy_ms)::BIGINT AS cpu_energy_ms,
    sum(cpu_energy_j) AS cpu_energy_j,
    max(last_active_ms) AS last_active_ms,
    sum(power_w_at_full * coalesce(power_full_ms, full_ms))
        / nullif(sum(coalesce(power_full_ms, full_ms)) FILTER (power_w_at_full IS NOT NULL), 0) AS power_w_at_full,
    max(power_limit_w) AS power_limit_w,
    sum(sm_ratio_at_full * coalesce(sm_full_ms, full_ms))
        / nullif(sum(coalesce(sm_full_ms, full_ms)) FILTER (sm_ratio_at_full IS NOT NULL), 0) AS sm_ratio_at_full,
    sum(CASE
        WHEN hang_ms IS NOT NULL THEN hang_ms
        WHEN coalesce(sm_ratio_at_full < $hang_sm_ratio, power_w_at_full < $hang_power_ratio * power_limit_w, false) THEN full_ms
        ELSE 0
    END)::BIGINT AS hang_ms,
    sum(profiled_ms)::BIGINT AS profiled_ms,
    -- of what was not read in all of profiled_ms nothing is said
    CASE WHEN count(sm_active) = count(profiled_ms) THEN sum(sm_active * profiled_ms) / nullif(sum(profiled_ms), 0) END AS sm_active,
    CASE WHEN count(tensor_active) = count(profiled_ms) THEN sum(tensor_active * profiled_ms) / nullif(sum(profiled_ms), 0) END AS tensor_active,
    CASE WHEN count(dram_active) = count(profiled_ms) THEN sum(dram_active * profiled_ms) / nullif(sum(profiled_ms), 0) END AS dram_active,
    CASE WHEN count(nvlink_b) = count(profiled_ms) THEN sum(nvlink_b)::BIGINT END AS nvlink_b,
    CASE WHEN count(pcie_b) = count(profiled_ms) THEN sum(pcie_b)::BIGINT END AS pcie_b,
    sum(cpu_s) AS cpu_s,
    coalesce(sum(coalesce(cpu_known_ms, known_ms)) FILTER (cpu_s IS NOT NULL), 0)::BIGINT AS cpu_known_ms,
    max(host_mem_max_b) AS host_mem_max_b,
    arg_max(map_source, t1_ms) AS map_source,
    arg_max(confidence, t1_ms) AS confidence
FROM cut
GROUP BY place, node, gpu_uuid
