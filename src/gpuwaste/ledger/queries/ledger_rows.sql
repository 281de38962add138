-- The rows of table judged of the picked runs, but for their findings. `candidate` names the findings of one run
-- (waste/findings) that have what they need at least: the others are not asked. Thresholds are the findings' own (LIMITS);
-- $rounding leaves room for sums that are rounded in another order there.
CREATE OR REPLACE TEMP TABLE ledger_rows AS
WITH parts AS (
    SELECT
        place,
        own,
        map(coalesce(list(reason) FILTER (what = 'unknown'), []), coalesce(list(ms) FILTER (what = 'unknown'), [])) AS unknown,
        map(coalesce(list(reason) FILTER (what = 'exempt'), []), coalesce(list(ms) FILTER (what = 'exempt'), [])) AS exempt
    FROM (SELECT place, own, what, reason, sum(ms)::BIGINT AS ms FROM ledger_parts GROUP BY ALL ORDER BY reason)
    GROUP BY place, own
),
summed AS (
    SELECT
        place,
        own,
        count(*) AS devices,
        sum(alloc_ms)::BIGINT AS alloc_ms,
        sum(idle_ms)::BIGINT AS idle_ms,
        sum(low_ms)::BIGINT AS low_ms,
        sum(moderate_ms)::BIGINT AS moderate_ms,
        sum(high_ms)::BIGINT AS high_ms,
        sum(suspended_ms)::BIGINT AS suspended_ms,
        sum(pending_ms)::BIGINT AS pending_ms,
        sum(CASE WHEN untouched THEN idle_ms ELSE 0 END)::BIGINT AS untouched_ms,
        sum(idle_run_ms)::BIGINT AS idle_run_ms,
        sum(wasted_ms)::BIGINT AS wasted_ms,
        -- the mean is over the time of which it is known, hour by hour or as told
        sum(pct_ms + coalesce(round(told_pct * active_ms)::BIGINT, 0))::BIGINT AS pct_ms,
        sum(CASE WHEN told_pct IS NULL THEN seen_known_ms ELSE active_ms END)::BIGINT AS seen_ms,
        sum(energy_j) AS energy_j,
        sum(energy_ms)::BIGINT AS energy_ms,
        sum(split_j) AS split_j,
        sum(wasted_j) AS wasted_j,
        sum(cpu_energy_ms)::BIGINT AS cpu_energy_ms,
        sum(cpu_energy_j) AS cpu_energy_j,
        bool_or(confidence = 'conflict') AS conflict,
        [
            count_if(level = 'none'), count_if(level = 'low'), count_if(level = 'moderate'), count_if(level = 'high'),
            count_if(level = 'unknown')
        ]::BIGINT[] AS level_devices,
        any_value(alloc_ms) AS each_ms,
        count_if(under_used)::BIGINT AS under_devices,
        count(under_used) AS asked_devices,
        min(due_coverage) AS due_coverage,
        -- of a run that could share a GPU each is used a little, and none is needed for its memory
        bool_and(coalesce(mean_pct > 0 AND mean_pct < $underused_below_pct, false) AND NOT resident) AS little_used,
        sum(mean_pct) AS pct,
        coalesce(sum(memory_ratio), 0) AS memory,
        count(*) - count(memory_ratio) AS memory_unknown,
        bool_or(untouched) AS untouched,
        bool_or(wasted_ms >= 1000 * $finding_min_s::DOUBLE AND proc_seen AND pct_ms = 0 AND NOT resident) AS opened,
        bool_or(wasted_ms >= 1000 * $finding_min_s::DOUBLE AND resident) AS held,
        max(hang_ms) >= 1000 * $hang_min_s::DOUBLE AS hung,
        bool_or(
            sm_active * seen_known_ms * 100 < $few_sms_ratio::DOUBLE * (1 + $rounding::DOUBLE) * pct_ms
            AND high_ms >= 1000 * $finding_min_s::DOUBLE
            AND power_w_at_full < $few_sms_power_ratio::DOUBLE * (1 + $rounding::DOUBLE) * power_limit_w
        ) AS few_sms,
        count(*) > 1 AND sum(pct_ms) > 0
        AND max(pct_ms) >= $on_one_gpu_ratio::DOUBLE * (1 - $rounding::DOUBLE) * sum(pct_ms) AS on_one,
        -- of GPUs with a mean alone: one was used, and the others stayed at 0 % at every reading
        count(*) > 1 AND count_if(told_pct > 0) = 1 AND count_if(level = 'none') = count(*) - 1 AS told_on_one,
        count(told_pct) > 0 AND bool_and(coalesce(mean_pct < $underused_below_pct, false)) AS told_low,
        least(
            min(least(t1_ms, until_ms)) FILTER (last_active_ms IS NOT NULL) - max(last_active_ms),
            min(idle_run_ms) FILTER (last_active_ms IS NOT NULL)
        ) >= 1000 * $finding_min_s::DOUBLE AS tail,
        max(wasted_ms) AS most_wasted_ms,
        avg(mean_pct) FILTER (pct_ms > 0) < $low_below_pct * (1 + $rounding::DOUBLE) AS low_mean
    FROM ledger_gpus
    GROUP BY place, own
),
tallies AS (
    SELECT
        s.*,
        {
            'devices': devices, 'alloc_ms': alloc_ms, 'idle_ms': idle_ms, 'low_ms': low_ms, 'moderate_ms': moderate_ms,
            'high_ms': high_ms, 'suspended_ms': suspended_ms, 'pending_ms': pending_ms, 'untouched_ms': untouched_ms,
            'idle_run_ms': idle_run_ms, 'wasted_ms': wasted_ms, 'pct_ms': pct_ms, 'seen_ms': seen_ms, 'energy_j': energy_j,
            'unknown': coalesce(p.unknown, MAP {}), 'exempt': coalesce(p.exempt, MAP {})
        } AS tally
    FROM summed s
    LEFT JOIN parts p USING (place, own)
),
nodes AS ( -- of the job on a node, the same in each of its GPUs' rows
    SELECT
        place,
        node,
        max({'ms': cpu_known_ms, 's': cpu_s}) FILTER (cpu_s IS NOT NULL AND cpu_known_ms > 0) AS cpu,
        max(host_mem_max_b) AS host_mem_max_b
    FROM ledger_gpus
    GROUP BY place, node
),
hosts AS (
    SELECT place, sum(cpu.s) AS cpu_s, sum(cpu.ms) / 1000 AS watched_s, sum(host_mem_max_b) AS host_mem_max_b
    FROM nodes
    GROUP BY place
),
watched AS (
    SELECT
        r.place,
        CASE WHEN r.cpus > 0 AND b.ran_ms > 0 AND b.ended THEN r.total_cpu_s END AS told_s, -- by accounting, at the end
        coalesce(nullif(r.cpus, 0), 1) * b.ran_ms / 1000 AS held_s,
        h.cpu_s / (nullif(h.watched_s, 0) * nullif(r.cpus, 0) / greatest(coalesce(r.n_nodes, 1), 1)) AS node_ratio,
        h.host_mem_max_b
    FROM picked_runs r
    JOIN ledger_spans b USING (place)
    LEFT JOIN hosts h USING (place)
),
cpus AS (
    SELECT
        *,
        coalesce(told_s, node_ratio * held_s) AS used_s,
        coalesce(node_ratio, told_s / nullif(held_s, 0)) >= $cpu_saturated_ratio::DOUBLE * (1 - $rounding::DOUBLE) AS saturated
    FROM watched
)
SELECT
    r.place,
    r.cluster,
    r.job_id,
    r.run_start,
    r."end",
    r."user",
    r.account,
    r."partition",
    r.printed_id,
    r.array_job_id,
    r.array_task_id,
    r.name,
    r.state,
    coalesce(r.gpus, o.devices, 0) AS gpus,
    r.gpu_type,
    r.whole_node,
    b.beyond,
    coalesce(o.conflict, false) AS conflict,
    coalesce(o.tally, {
        'devices': 0, 'alloc_ms': 0, 'idle_ms': 0, 'low_ms': 0, 'moderate_ms': 0, 'high_ms': 0, 'suspended_ms': 0,
        'pending_ms': 0, 'untouched_ms': 0, 'idle_run_ms': 0, 'wasted_ms': 0, 'pct_ms': 0, 'seen_ms': 0, 'energy_j': NULL,
        'unknown': MAP {}, 'exempt': MAP {}
    }) AS own,
    s.tally AS shared,
    o.energy_ms,
    o.split_j,
    o.wasted_j,
    o.cpu_energy_ms,
    o.cpu_energy_j,
    coalesce(o.level_devices, [0, 0, 0, 0, 0]) AS level_devices,
    coalesce(list_transform(o.level_devices, lambda n: n * o.each_ms), [0, 0, 0, 0, 0]) AS level_ms,
    coalesce(o.under_devices, 0) AS under_devices,
    coalesce(o.under_devices * o.each_ms, 0) AS under_ms,
    coalesce(o.asked_devices, 0) AS asked_devices,
    c.node_ratio AS node_cpu_ratio,
    c.used_s AS cpu_used_s,
    CASE WHEN c.used_s IS NOT NULL THEN c.held_s END AS cpu_held_s,
    coalesce(r.max_rss_b, c.host_mem_max_b) / nullif(r.mem_req_b, 0) AS memory_ratio,
    coalesce(o.due_coverage, 1.0) AS due_coverage,
    CASE
        WHEN o.due_coverage >= $min_coverage AND o.little_used AND NOT r.interactive AND b.ran_ms >= 1000 * $run_min_s::DOUBLE
        THEN {
            'until_ms': b.until_ms, 'pct': o.pct, 'devices': o.devices, 'memory': o.memory, 'memory_unknown': o.memory_unknown
        }
    END AS small,
    list_filter([
        CASE WHEN o.untouched THEN 'gpus_untouched' END,
        CASE WHEN o.opened THEN 'gpus_opened_idle' END,
        CASE WHEN o.held THEN 'memory_resident' END,
        CASE WHEN o.hung THEN 'busy_hang' END,
        CASE WHEN o.few_sms THEN 'few_sms' END,
        CASE WHEN o.on_one OR o.told_on_one THEN 'one_gpu_of_many' END,
        CASE WHEN o.told_low THEN 'low_use' END,
        CASE WHEN o.tail AND NOT r.interactive THEN 'idle_tail' END,
        CASE WHEN r.interactive AND o.most_wasted_ms > 1000 * $interactive_grace_s::DOUBLE THEN 'idle_interactive' END,
        CASE WHEN o.low_mean AND c.saturated THEN 'cpu_starved' END
    ], lambda kind: kind IS NOT NULL) AS candidate
FROM picked_runs r
JOIN ledger_spans b USING (place)
LEFT JOIN tallies o ON o.place = r.place AND o.own
LEFT JOIN (SELECT place, tally FROM tallies WHERE NOT own) s ON s.place = r.place
JOIN cpus c ON c.place = r.place
