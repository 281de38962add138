-- Adds the picked hours up, with what was added up of the same GPUs, runs and day before. Every millisecond is in the sums;
-- maxima stay maxima; the means at full use are weighted by the time that they stand for.
CREATE OR REPLACE TEMP TABLE rollup_rows AS
WITH counted AS (
    SELECT
        * EXCLUDE (seq, final, hour_utc, xid, xids) REPLACE (
-- include: row_energy_ms
            AS energy_ms,
-- include: row_idle_energy
            AS idle_energy_j
        ),
        $day::BIGINT AS day_utc,
        (1 << ((hour_utc - $day) // 3600))::INTEGER AS hours,
        coalesce(list_sum(util_ms), 0)::BIGINT AS known_ms,
        coalesce(list_sum(list_transform(pct, lambda p, i: CASE WHEN p >= $full_pct THEN util_ms[i] ELSE 0 END)), 0)::BIGINT AS full_ms
    FROM rollup_due
),
parts AS (
    SELECT
        * EXCLUDE (known_ms, full_ms),
        CASE WHEN idle_energy_j IS NOT NULL THEN energy_j END AS split_j,
        CASE WHEN power_w_at_full IS NULL THEN 0 ELSE full_ms END AS power_full_ms,
        CASE WHEN sm_ratio_at_full IS NULL THEN 0 ELSE full_ms END AS sm_full_ms,
        CASE
            WHEN coalesce(sm_ratio_at_full < $hang_sm_ratio, power_w_at_full < $hang_power_ratio * power_limit_w, false) THEN full_ms
            ELSE 0
        END AS hang_ms,
        CASE WHEN cpu_s IS NULL THEN 0 ELSE known_ms END AS cpu_known_ms
    FROM counted
    UNION ALL BY NAME
    SELECT d.* EXCLUDE (part)
    FROM days d
    SEMI JOIN rollup_due USING (cluster, job_id, run_start, node, gpu_uuid)
    WHERE d.day_utc = $day
),
sums AS MATERIALIZED (
    SELECT
        row_number() OVER () AS row_no,
        cluster,
        job_id,
        run_start,
        node,
        gpu_uuid,
        any_value(day_utc) AS day_utc,
        flatten(list(pct)) AS all_pct,
        flatten(list(util_ms)) AS all_util_ms,
        flatten(list(unknown_reason)) AS all_reason,
        flatten(list(unknown_ms)) AS all_unknown_ms,
        bit_or(hours) AS hours,
        min(share) AS share,
        min(t0_ms) AS t0_ms,
        max(t1_ms) AS t1_ms,
        sum(idle_run_ms)::INTEGER AS idle_run_ms,
        sum(suspended_ms)::INTEGER AS suspended_ms,
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
        sum(power_w_at_full * power_full_ms) / nullif(sum(power_full_ms), 0) AS power_w_at_full,
        sum(power_full_ms)::INTEGER AS power_full_ms,
        max(power_limit_w) AS power_limit_w,
        sum(sm_ratio_at_full * sm_full_ms) / nullif(sum(sm_full_ms), 0) AS sm_ratio_at_full,
        sum(sm_full_ms)::INTEGER AS sm_full_ms,
        sum(hang_ms)::INTEGER AS hang_ms,
        sum(profiled_ms)::BIGINT AS profiled_ms,
        -- of what was not read in all of profiled_ms nothing is said
        CASE WHEN count(sm_active) = count(profiled_ms) THEN sum(sm_active * profiled_ms) / nullif(sum(profiled_ms), 0) END AS sm_active,
        CASE WHEN count(tensor_active) = count(profiled_ms) THEN sum(tensor_active * profiled_ms) / nullif(sum(profiled_ms), 0) END AS tensor_active,
        CASE WHEN count(dram_active) = count(profiled_ms) THEN sum(dram_active * profiled_ms) / nullif(sum(profiled_ms), 0) END AS dram_active,
        CASE WHEN count(nvlink_b) = count(profiled_ms) THEN sum(nvlink_b)::BIGINT END AS nvlink_b,
        CASE WHEN count(pcie_b) = count(profiled_ms) THEN sum(pcie_b)::BIGINT END AS pcie_b,
        sum(cpu_s) AS cpu_s,
        sum(cpu_known_ms)::INTEGER AS cpu_known_ms,
        max(host_mem_max_b) AS host_mem_max_b,
        arg_max(map_source, t1_ms) AS map_source,
        arg_max(confidence, t1_ms) AS confidence
    FROM parts
    GROUP BY cluster, job_id, run_start, node, gpu_uuid
),
percents AS (
    SELECT row_no, list(pct ORDER BY pct) AS pct, list(ms ORDER BY pct) AS util_ms
    FROM (
        SELECT row_no, pct, sum(ms)::INTEGER AS ms
        FROM (SELECT row_no, unnest(all_pct) AS pct, unnest(all_util_ms) AS ms FROM sums)
        GROUP BY row_no, pct
    )
    GROUP BY row_no
),
reasons AS (
    SELECT row_no, list(reason ORDER BY reason) AS unknown_reason, list(ms ORDER BY reason) AS unknown_ms
    FROM (
        SELECT row_no, reason, sum(ms)::INTEGER AS ms
        FROM (SELECT row_no, unnest(all_reason) AS reason, unnest(all_unknown_ms) AS ms FROM sums)
        GROUP BY row_no, reason
    )
    GROUP BY row_no
)
SELECT
    s.* EXCLUDE (row_no, all_pct, all_util_ms, all_reason, all_unknown_ms),
    coalesce(p.pct, []) AS pct,
    coalesce(p.util_ms, []) AS util_ms,
    coalesce(r.unknown_reason, []) AS unknown_reason,
    coalesce(r.unknown_ms, []) AS unknown_ms
FROM sums s
LEFT JOIN percents p USING (row_no)
LEFT JOIN reasons r USING (row_no)
