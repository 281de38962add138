-- The sums of the shared GPUs of rows.
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
