-- GPU-milliseconds between the edges of the window, by user, account and partition; `shared` is NULL where none was shared.
WITH
-- include: waste.judged_runs
,
-- include: waste.judged_window
,
of_own AS (
    SELECT
        "user",
        account,
        "partition",
        {
            'devices': coalesce(sum(own.devices), 0)::BIGINT,
            'alloc_ms': coalesce(sum(own.alloc_ms), 0)::BIGINT,
            'idle_ms': coalesce(sum(own.idle_ms), 0)::BIGINT,
            'low_ms': coalesce(sum(own.low_ms), 0)::BIGINT,
            'moderate_ms': coalesce(sum(own.moderate_ms), 0)::BIGINT,
            'high_ms': coalesce(sum(own.high_ms), 0)::BIGINT,
            'suspended_ms': coalesce(sum(own.suspended_ms), 0)::BIGINT,
            'pending_ms': coalesce(sum(own.pending_ms), 0)::BIGINT,
            'untouched_ms': coalesce(sum(own.untouched_ms), 0)::BIGINT,
            'idle_run_ms': coalesce(sum(own.idle_run_ms), 0)::BIGINT,
            'wasted_ms': coalesce(sum(own.wasted_ms), 0)::BIGINT,
            'pct_ms': coalesce(sum(own.pct_ms), 0)::BIGINT,
            'seen_ms': coalesce(sum(own.seen_ms), 0)::BIGINT,
            'energy_j': sum(own.energy_j)
        } AS own
    FROM parts
    GROUP BY "user", account, "partition"
),
of_shared AS ( -- of few runs
    SELECT
        "user",
        account,
        "partition",
        {
            'devices': coalesce(sum(shared.devices), 0)::BIGINT,
            'alloc_ms': coalesce(sum(shared.alloc_ms), 0)::BIGINT,
            'idle_ms': coalesce(sum(shared.idle_ms), 0)::BIGINT,
            'low_ms': coalesce(sum(shared.low_ms), 0)::BIGINT,
            'moderate_ms': coalesce(sum(shared.moderate_ms), 0)::BIGINT,
            'high_ms': coalesce(sum(shared.high_ms), 0)::BIGINT,
            'suspended_ms': coalesce(sum(shared.suspended_ms), 0)::BIGINT,
            'pending_ms': coalesce(sum(shared.pending_ms), 0)::BIGINT,
            'untouched_ms': coalesce(sum(shared.untouched_ms), 0)::BIGINT,
            'idle_run_ms': coalesce(sum(shared.idle_run_ms), 0)::BIGINT,
            'wasted_ms': coalesce(sum(shared.wasted_ms), 0)::BIGINT,
            'pct_ms': coalesce(sum(shared.pct_ms), 0)::BIGINT,
            'seen_ms': coalesce(sum(shared.seen_ms), 0)::BIGINT,
            'energy_j': sum(shared.energy_j)
        } AS shared
    FROM parts
    WHERE shared IS NOT NULL
    GROUP BY "user", account, "partition"
)
SELECT o.*, s.shared
FROM of_own o
LEFT JOIN of_shared s USING ("user", account, "partition")
