-- The ledger (CONTRACTS.md): each GPU of the picked runs, what was seen of it as seen_..., and each millisecond of its
-- allocation in exactly one class. Accounting says how long it was allocated, the hours what was seen; what accounting
-- has and the hours lack is unknown, or pending while it may still be on its way. In steps, each from the one before it:
-- a name that is used again within its own SELECT is computed again.
CREATE OR REPLACE TEMP TABLE ledger_gpus AS
WITH counted AS (
    SELECT * FROM ledger_seen SEMI JOIN (SELECT place FROM ledger_spans WHERE beyond = 0) USING (place)
    UNION ALL BY NAME -- accounting's count bounds what counts: last what no driver lists
    SELECT s.*
    FROM ledger_seen s
    JOIN ledger_spans b ON b.place = s.place AND b.beyond > 0
    QUALIFY s.share < 1 OR row_number() OVER (
        PARTITION BY s.place, s.share >= 1
        ORDER BY starts_with(s.gpu_uuid, 'missing:'), coalesce(s.whole_known_ms, s.known_ms) DESC, s.node, s.gpu_uuid
    ) <= b.gpus
    UNION ALL BY NAME -- GPUs of which no agent told: no name
    SELECT
        place, '' AS node, '' AS gpu_uuid, 1.0 AS share, 0 AS t0_ms, 0 AS t1_ms, false AS final, 0 AS known_ms,
        0 AS idle_before_ms, 0 AS idle_run_before_ms, 0 AS idle_ms, 0 AS low_ms, 0 AS high_ms, 0 AS pct_ms,
        0 AS idle_run_ms, 0 AS suspended_ms, false AS proc_seen, 0 AS hang_ms, 0 AS cpu_known_ms, 'none' AS map_source,
        'none' AS confidence
    FROM (SELECT place, unnest(range(gpus - own_seen)) FROM ledger_spans WHERE gpus > own_seen)
),
named AS (
    SELECT
        * RENAME (
            known_ms AS seen_known_ms, idle_ms AS seen_idle_ms, low_ms AS seen_low_ms, high_ms AS seen_high_ms,
            suspended_ms AS seen_suspended_ms, idle_run_ms AS seen_idle_run_ms
        ),
        share >= 1 AS own,
        coalesce(pct_ms / nullif(known_ms, 0), told_pct) AS mean_pct,
        coalesce(list_sum(unknown_ms), 0)::BIGINT AS seen_unknown_ms,
        NOT proc_seen AND coalesce(whole_known_ms, known_ms) > 0 AND NOT coalesce(whole_active, idle_ms < known_ms) AS untouched,
        mem_max_b / nullif(mem_total_b, 0) AS memory_ratio
    FROM counted
),
spanned AS (
    SELECT
        c.*,
        b.begin_ms,
        b.until_ms,
        b.suspension_ms,
        b.ended,
        b.completed,
        b.interactive,
        b.until_ms - b.begin_ms AS alloc_ms,
        c.seen_known_ms + c.seen_unknown_ms + c.seen_suspended_ms - (b.until_ms - b.begin_ms) AS excess_ms,
        c.seen_known_ms - c.seen_idle_ms - c.seen_low_ms - c.seen_high_ms AS seen_moderate_ms,
        coalesce(c.proc_seen AND c.memory_ratio >= $memory_resident_ratio, false) AS resident
    FROM named c
    JOIN ledger_spans b USING (place)
),
cut AS ( -- what was seen beyond accounting's interval is cut in the job's favour: idle, unknown, suspended, and so on
    SELECT
        * EXCLUDE (excess_ms),
        greatest(excess_ms, 0) AS over_ms,
        least(greatest(-excess_ms, 0), greatest(suspension_ms - seen_suspended_ms, 0)) AS suspended_more_ms,
        greatest(-excess_ms, 0) AS rest_ms,
        greatest(excess_ms - seen_idle_ms, 0) AS unknown_cut_ms,
        greatest(excess_ms - seen_idle_ms - seen_unknown_ms, 0) AS suspended_cut_ms,
        greatest(excess_ms - seen_idle_ms - seen_unknown_ms - seen_suspended_ms, 0) AS low_cut_ms,
        greatest(excess_ms - seen_idle_ms - seen_unknown_ms - seen_suspended_ms - seen_low_ms, 0) AS moderate_cut_ms
    FROM spanned
),
classed AS (
    SELECT
        *,
        greatest(seen_idle_ms - over_ms, 0) AS idle_ms,
        greatest(seen_low_ms - low_cut_ms, 0) AS low_ms,
        greatest(seen_moderate_ms - moderate_cut_ms, 0) AS moderate_ms,
        greatest(seen_high_ms - greatest(moderate_cut_ms - seen_moderate_ms, 0), 0) AS high_ms,
        greatest(seen_suspended_ms - suspended_cut_ms, 0) + suspended_more_ms AS suspended_ms,
        CASE
            WHEN final AND ended THEN 0
            ELSE least(
                rest_ms - suspended_more_ms,
                greatest(until_ms - greatest(1000 * $now::BIGINT - $pending_ms, t1_ms, begin_ms), 0)
            )
        END AS pending_ms
    FROM cut
),
summed AS (
    SELECT
        *,
        rest_ms - suspended_more_ms - pending_ms AS unseen_ms,
        idle_ms + low_ms + moderate_ms + high_ms AS known_ms,
        least(seen_idle_run_ms, idle_ms) AS idle_run_ms,
        CASE WHEN untouched THEN idle_ms ELSE least(seen_idle_run_ms, idle_ms) END AS wasted_ms,
        alloc_ms - suspended_ms AS active_ms
    FROM classed
)
SELECT
    * EXCLUDE (
        energy_ms, cpu_energy_ms, rest_ms, suspended_cut_ms, suspended_more_ms, low_cut_ms, moderate_cut_ms, seen_moderate_ms, suspension_ms,
        begin_ms, ended, completed, interactive
    ),
    CASE WHEN energy_ms IS NOT NULL THEN least(energy_ms, alloc_ms) END AS energy_ms,
    CASE WHEN cpu_energy_ms IS NOT NULL THEN least(cpu_energy_ms, alloc_ms) END AS cpu_energy_ms,
    -- at the GPU's mean power while it was idle in this run
    CASE WHEN wasted_ms = 0 THEN idle_energy_j * 0 ELSE idle_energy_j * wasted_ms / nullif(seen_idle_ms, 0) END AS wasted_j,
    coalesce(known_ms / nullif(greatest(active_ms - CASE WHEN ended THEN 0 ELSE pending_ms END, 0), 0), 0.0) AS due_coverage,
    CASE -- of the mean over the run: 0, below 33, 33 to 66, above 66 percent
        WHEN mean_pct IS NULL THEN 'unknown'
        WHEN mean_pct = 0 AND told_pct IS NULL THEN 'none' -- told, it is rounded
        WHEN mean_pct < $low_below_pct THEN 'low'
        WHEN mean_pct > $high_above_pct THEN 'high'
        ELSE 'moderate'
    END AS level,
    CASE -- NULL: the rule does not apply, or too little is known
        WHEN
            completed
            AND active_ms > 1000 * $underused_min_s::DOUBLE
            AND (known_ms / active_ms >= $min_coverage OR told_pct IS NOT NULL)
        THEN mean_pct < $underused_below_pct
    END AS under_used,
    CASE -- the part of the waste that has a good reason; it stays in the waste
        WHEN resident THEN wasted_ms
        WHEN interactive THEN least(
            wasted_ms, greatest($grace_ms - CASE WHEN untouched THEN idle_before_ms ELSE idle_run_before_ms END, 0)
        )
        ELSE 0
    END AS exempt_ms
FROM summed
